#!lua flags=allow-oom
-- Removes a replay job.
-- KEYS   1 meta   2 replays   3 the job
-- ARGV   1 epoch   2 id of the job
-- Reply  OK
-- Cost   O(fields)
-- Repeat finds nothing to remove.
redis.call('DEL', KEYS[3])
redis.call('ZREM', KEYS[2], ARGV[2])
return redis.status_reply('OK')
