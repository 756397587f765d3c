#!lua flags=allow-oom
-- Creates a replay job, or replaces some of its fields.
-- KEYS   1 meta   2 replays   3 the job
-- ARGV   1 its number   2 id of the job, then names and values of fields
-- Reply  the last call before this one
-- Cost   O(fields)
-- Repeat does nothing.
for i = 3, #ARGV, 2 do
    redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 1])
end
redis.call('ZADD', KEYS[2], 0, ARGV[2])
return before
