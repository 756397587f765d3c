#!lua flags=allow-oom
-- Ends the lease of the only writer, which speaks no more. The next one need not wait.
-- KEYS   1 meta
-- ARGV   1 number
-- Reply  the last call before this one
-- Cost   O(1)
-- Repeat does nothing.
redis.call('HDEL', KEYS[1], 'lease', 'holder')
return before
