#!lua flags=allow-oom
-- Stores or removes the remark on a group of dead letters. If there are too many remarks, the one
-- that was changed least recently is removed.
-- KEYS   1 meta   2 remarks   3 remarked
-- ARGV   1 its number   2 fingerprint   3 record, or '' to remove it   4 time   5 most remarks
-- Reply  the last call before this one
-- Cost   O(log(remarks))
-- Repeat does nothing.
if ARGV[3] == '' then
    redis.call('HDEL', KEYS[2], ARGV[2])
    redis.call('ZREM', KEYS[3], ARGV[2])
else
    redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])
    redis.call('ZADD', KEYS[3], ARGV[4], ARGV[2])
    if redis.call('ZCARD', KEYS[3]) > tonumber(ARGV[5]) then
        redis.call('HDEL', KEYS[2], redis.call('ZPOPMIN', KEYS[3])[1])
    end
end
return before
