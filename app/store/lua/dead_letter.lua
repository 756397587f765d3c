#!lua flags=allow-oom
-- Turns entries into dead letters: removes the entry, adds the record and its indexes, in one step.
-- KEYS   1 meta   2 bodies   3 dead   4 prints, then receivers of messages, marks and indexes
-- ARGV   1 its number   2 id of the newest letter, then for each letter: id, record, fingerprint,
--        positions of the six indexes in KEYS, the one of the fingerprint last; id of the message,
--        name of the session, positions of the message's receivers (0: it had no entry) and of the
--        session's marks
-- Reply  the last call before this one, how many letters are new
-- Cost   O(letters x log(letters in the store))
-- Repeat does nothing, and replies without how many.
local dead, prints, indexes = KEYS[3], KEYS[4], 6
local new = 0
for at = 3, last, 7 + indexes do
    local letter, entry = ARGV[at], at + 3 + indexes
    if ARGV[entry + 2] ~= '0' then
        leave(ARGV[entry], KEYS[tonumber(ARGV[entry + 2])], ARGV[entry + 1])
        redis.call('HDEL', KEYS[tonumber(ARGV[entry + 3])], ARGV[entry])
    end
    if redis.call('HSETNX', dead, letter, ARGV[at + 1]) == 1 then
        new = new + 1
        for i = at + 3, at + 2 + indexes do
            redis.call('ZADD', KEYS[tonumber(ARGV[i])], 0, letter)
        end
        local alike = redis.call('ZCARD', KEYS[tonumber(ARGV[at + 2 + indexes])])
        redis.call('ZADD', prints, alike, ARGV[at + 2])
    end
end
journal()
return { before, new }
