#!lua flags=allow-oom
-- Finishes an upgrade: from now on the store is in the newest layout, and earlier releases refuse it.
-- KEYS   1 meta
-- ARGV   1 its number   2 version of the layout
-- Reply  the last call before this one
-- Cost   O(1)
-- Repeat does nothing.
redis.call('HSET', KEYS[1], 'version', ARGV[2])
return before
