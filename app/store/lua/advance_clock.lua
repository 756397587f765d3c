#!lua
-- Advances the store's clock, and notes which ids of messages may have been given. Fails where
-- storing a message would, so it also shows that.
-- KEYS   1 meta
-- ARGV   1 its number   2 time of the clock, in seconds   3 an id above all that were given
-- Reply  the last call before this one
-- Cost   O(1)
-- Repeat does nothing.
advance(ARGV[2])
redis.call('HSET', KEYS[1], 'stamped', ARGV[3])
return before
