#!lua flags=allow-oom
-- Creates a replay job, or replaces some of its fields.
-- KEYS   1 meta   2 replays   3 the job
-- ARGV   1 epoch   2 id of the job, then names and values of fields
-- Reply  OK
-- Cost   O(fields)
-- Repeat changes nothing.
for i = 3, #ARGV, 2 do
    redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 1])
end
redis.call('ZADD', KEYS[2], 0, ARGV[2])
return redis.status_reply('OK')
