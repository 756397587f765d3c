#!lua flags=allow-oom
-- Removes the records of dead letters and their entries in all indexes.
-- KEYS   1 meta   2 dead   3 prints, then indexes
-- ARGV   1 its number, then for each letter: id, fingerprint, positions of its six indexes in KEYS, the
--        one of the fingerprint last
-- Reply  the last call before this one, number of letters removed
-- Cost   O(letters x log(letters in the store))
-- Repeat does nothing, and replies without how many.
local indexes = 6
local removed = 0
for at = 2, #ARGV, 2 + indexes do
    removed = removed + redis.call('HDEL', KEYS[2], ARGV[at])
    for i = at + 2, at + 1 + indexes do
        redis.call('ZREM', KEYS[tonumber(ARGV[i])], ARGV[at])
    end
    local alike = redis.call('ZCARD', KEYS[tonumber(ARGV[at + 1 + indexes])])
    if alike > 0 then
        redis.call('ZADD', KEYS[3], alike, ARGV[at + 1])
    else
        redis.call('ZREM', KEYS[3], ARGV[at + 1])
    end
end
return { before, removed }
