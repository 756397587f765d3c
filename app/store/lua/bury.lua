#!lua flags=allow-oom
-- Makes entries dead letters: the entry goes, the record and what lists it come, in one step.
-- KEYS   1 meta   2 bodies   3 refs   4 dead   5 prints, then queues and indexes
-- ARGV   1 epoch   2 id of the newest letter, then for each letter: id, record, id of the message,
--        position of the queue in KEYS (0: none), fingerprint, positions of the six indexes, the
--        one of the fingerprint last
-- Reply  how many letters are new
-- Cost   O(letters x log(letters in the store))
-- Repeat removes an entry that a repeated keep brought back. But one that a replay of the letter
--        brought back stays: then the letter is not new any more.
local dead, prints, indexes = KEYS[4], KEYS[5], 6
local newest = redis.call('HGET', KEYS[1], 'newest')
if not newest or newest < ARGV[2] then
    redis.call('HSET', KEYS[1], 'newest', ARGV[2])
end
local new = 0
for at = 3, #ARGV, 5 + indexes do
    local letter, record, id, queue = ARGV[at], ARGV[at + 1], ARGV[at + 2], tonumber(ARGV[at + 3])
    local is_first = redis.call('HSETNX', dead, letter, record) == 1
    if queue > 0 and (is_first or string.sub(redis.call('HGET', dead, letter), 1, 4) == 'new ') then
        if redis.call('HDEL', KEYS[queue], id) == 1 then
            release(id)
        end
    end
    if is_first then
        new = new + 1
        for i = at + 5, at + 4 + indexes do
            redis.call('ZADD', KEYS[tonumber(ARGV[i])], 0, letter)
        end
        local alike = redis.call('ZCARD', KEYS[tonumber(ARGV[at + 4 + indexes])])
        redis.call('ZADD', prints, alike, ARGV[at + 4])
    end
end
journal()
return new
