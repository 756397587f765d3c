#!lua flags=allow-oom
-- Creates or replaces records of sessions.
-- KEYS   1 meta   2 sessions
-- ARGV   1 its number, then for each session: name, record
-- Reply  the last call before this one
-- Cost   O(sessions)
-- Repeat does nothing.
for i = 2, #ARGV, 2 do
    redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
end
return before
