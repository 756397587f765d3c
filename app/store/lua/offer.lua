#!lua flags=allow-oom
-- Offers the store of the only writer, which is silent, to another host, or takes the offer back. The
-- opening of that host needs the offer, so only one of both can have the store.
-- KEYS   1 meta
-- ARGV   1 epoch   2 the host, '' to take the offer back
-- Reply  the epoch in force, '' if there is none: if it is another one, nothing is changed
-- Cost   O(1)
-- Repeat does the same again, which does no harm.
local epoch = redis.call('HGET', KEYS[1], 'epoch')
if epoch == ARGV[1] then
    if ARGV[2] == '' then
        redis.call('HDEL', KEYS[1], 'offer')
    else
        redis.call('HSET', KEYS[1], 'offer', ARGV[2])
    end
end
return epoch or ''
