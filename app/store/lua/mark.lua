#!lua flags=allow-oom
-- Remembers how far entries have come; entries that are not there stay away.
-- KEYS   1 meta, then queues
-- ARGV   1 epoch, then for each queue: its position in KEYS, number of entries, then for each of
--        them: id, mark
-- Reply  OK
-- Cost   O(entries)
-- Repeat changes nothing, if what is behind it is repeated too.
local at = 2
while at <= #ARGV do
    local queue, count = KEYS[tonumber(ARGV[at])], tonumber(ARGV[at + 1])
    at = at + 2
    for i = at, at + 2 * count - 1, 2 do
        local found = redis.call('HGET', queue, ARGV[i])
        if found then
            local generation = found ~= '' and string.match(found, 'g%d+$') or ''
            redis.call('HSET', queue, ARGV[i], ARGV[i + 1] .. generation)
        end
    end
    at = at + 2 * count
end
journal()
return redis.status_reply('OK')
