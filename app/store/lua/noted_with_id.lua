-- Notes that this call is carried out; and which id is the newest.
-- ARGV   2 the newest id that the call brings
if not is_repeat then
    local call = string.sub(ARGV[1], 23, 43)
    redis.call('HSET', KEYS[1], 'call', call, 'newest', newest < ARGV[2] and ARGV[2] or newest)
end
