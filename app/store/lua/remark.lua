#!lua flags=allow-oom
-- Keeps what operators say of dead letters that failed alike, or forgets it; the oldest goes.
-- KEYS   1 meta   2 remarks   3 remarked
-- ARGV   1 epoch   2 fingerprint   3 record, or '' to forget it   4 when   5 how many at most
-- Reply  OK
-- Cost   O(log(remarks))
-- Repeat changes nothing.
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
return redis.status_reply('OK')
