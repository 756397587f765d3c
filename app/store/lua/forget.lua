#!lua flags=allow-oom
-- Removes sessions and their marks. Their remaining entries are settled after this; if the process
-- is killed in between, the next one to load the store finds them without a session.
-- KEYS   1 meta   2 sessions   3 handed, then marks of the sessions
-- ARGV   1 its number, then the names of the sessions, in the order of their marks
-- Reply  the last call before this one
-- Cost   O(sessions); memory is freed in another thread
-- Repeat does nothing.
for i = 2, last do
    redis.call('HDEL', KEYS[2], ARGV[i])
    redis.call('HDEL', KEYS[3], ARGV[i])
    redis.call('UNLINK', KEYS[i + 2])
end
journal()
return before
