#!lua flags=allow-oom
-- Removes entries, and bodies with their last entry.
-- KEYS   1 meta   2 bodies   3 refs, then queues
-- ARGV   1 epoch, then for each queue: its position in KEYS, number of entries, their ids
-- Reply  OK
-- Cost   O(entries)
-- Repeat finds nothing to remove.
local at = 2
while at <= #ARGV do
    local queue, count = KEYS[tonumber(ARGV[at])], tonumber(ARGV[at + 1])
    at = at + 2
    for i = at, at + count - 1 do
        if redis.call('HDEL', queue, ARGV[i]) == 1 then
            release(ARGV[i])
        end
    end
    at = at + count
end
journal()
return redis.status_reply('OK')
