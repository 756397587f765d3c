-- Notes that this call is carried out.
if not is_repeat then
    redis.call('HSET', KEYS[1], 'call', string.sub(ARGV[1], 23, 43))
end
