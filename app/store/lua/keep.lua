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
local at = 3
while at <= #ARGV do
    at = enter(at)
end
journal()
return redis.status_reply('OK')
