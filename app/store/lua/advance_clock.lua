#!lua
-- Advances the store's clock. Fails where storing a message would, so it also shows that.
-- KEYS   1 meta
-- ARGV   1 epoch   2 time of the clock, in seconds
-- Reply  OK
-- Cost   O(1)
-- Repeat changes nothing.
advance(ARGV[2])
return redis.status_reply('OK')
