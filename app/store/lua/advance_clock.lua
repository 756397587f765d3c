#!lua
-- Advances the store's clock. Fails where storing a message would, so it also shows that.
-- KEYS   1 meta
-- ARGV   1 its number   2 time of the clock, in seconds
-- Reply  the last call before this one
-- Cost   O(1)
-- Repeat does nothing.
advance(ARGV[2])
return before
