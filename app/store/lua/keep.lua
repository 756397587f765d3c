#!lua
-- Stores messages: each once, with the sessions that will receive it; and changes what is kept of
-- requests, whose replies and ends some of them are, or which some of them carry.
-- KEYS   1 meta   2 bodies   3 requests, then receivers of messages and marks of sessions
-- ARGV   1 epoch   2 id of the newest message   3 number of the arguments for requests, which
--        follow: the name and value of each field, '' to remove it; then the messages, as in enter
-- Reply  OK
-- Cost   O(entries)
-- Repeat adds no entry that is still there, and leaves its mark alone. An entry that was settled
--        meanwhile comes back for a moment: calls are repeated in order, and what settled it was
--        called later, so it was not answered either and is repeated after this.
local at = 4 + tonumber(ARGV[3])
for i = 4, at - 1, 2 do
    if ARGV[i + 1] == '' then
        redis.call('HDEL', KEYS[3], ARGV[i])
    else
        redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 1])
    end
end
while at <= last do
    at = enter(at)
end
journal()
return redis.status_reply('OK')
