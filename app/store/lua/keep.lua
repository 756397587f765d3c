#!lua
-- Stores messages: each once, with the sessions that will receive it.
-- KEYS   1 meta   2 bodies, then receivers of messages and marks of sessions
-- ARGV   1 epoch   2 id of the newest message, then the messages, as in enter
-- Reply  OK
-- Cost   O(entries)
-- Repeat adds no entry that is still there, and leaves its mark alone. An entry that was settled
--        meanwhile comes back for a moment: calls are repeated in order, and what settled it was
--        called later, so it was not answered either and is repeated after this.
local at = 3
while at <= last do
    at = enter(at)
end
journal()
return redis.status_reply('OK')
