#!lua
-- Keeps messages: each body once, and an entry in every receiver's queue.
-- KEYS   1 meta   2 bodies   3 refs, then queues
-- ARGV   1 epoch   2 id of the newest message, then for each message:
--        id, entry ('' or its generation), body, number of queues, their positions in KEYS
-- Reply  OK
-- Cost   O(entries)
-- Repeat adds no entry that is still there, and leaves its mark alone. An entry that was settled
--        meanwhile comes back for a moment: calls are repeated in order, and what settled it was
--        called later, so it was not answered either and is repeated behind this.
local newest = redis.call('HGET', KEYS[1], 'newest')
if not newest or newest < ARGV[2] then
    redis.call('HSET', KEYS[1], 'newest', ARGV[2])
end
local at = 3
while at <= #ARGV do
    local id, entry, body, count = ARGV[at], ARGV[at + 1], ARGV[at + 2], tonumber(ARGV[at + 3])
    at = at + 4
    local added = 0
    for i = at, at + count - 1 do
        added = added + redis.call('HSETNX', KEYS[tonumber(ARGV[i])], id, entry)
    end
    at = at + count
    if added > 0 then
        refer(id, body, added)
    end
end
return redis.status_reply('OK')
