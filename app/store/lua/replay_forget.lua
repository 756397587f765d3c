#!lua flags=allow-oom
-- Removes a replay job.
-- KEYS   1 meta   2 replays   3 the job
-- ARGV   1 its number   2 id of the job
-- Reply  the last call before this one
-- Cost   O(fields)
-- Repeat does nothing.
redis.call('DEL', KEYS[3])
redis.call('ZREM', KEYS[2], ARGV[2])
return before
