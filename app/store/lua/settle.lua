#!lua flags=allow-oom
-- Removes entries, and bodies with their last entry.
-- KEYS   1 meta   2 bodies   3 refs, then queues
-- ARGV   1 epoch, then for each queue: its position in KEYS, number of entries, their ids
-- Reply  OK
-- Cost   O(entries)
-- Repeat finds nothing to remove.
-- What many receivers have taken at once is counted once.
local released = {}
local at = 2
while at <= #ARGV do
    local queue, count = KEYS[tonumber(ARGV[at])], tonumber(ARGV[at + 1])
    at = at + 2
    for i = at, at + count - 1 do
        if redis.call('HDEL', queue, ARGV[i]) == 1 then
            released[ARGV[i]] = (released[ARGV[i]] or 0) + 1
        end
    end
    at = at + count
end
for id, fewer in pairs(released) do
    release(id, fewer)
end
journal()
return redis.status_reply('OK')
