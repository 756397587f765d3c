#!lua flags=allow-oom
-- Creates or replaces records of sessions.
-- KEYS   1 meta   2 sessions
-- ARGV   1 epoch, then for each session: name, record
-- Reply  OK
-- Cost   O(sessions)
-- Repeat changes nothing.
for i = 2, #ARGV, 2 do
    redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
end
return redis.status_reply('OK')
