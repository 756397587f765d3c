#!lua flags=allow-oom
-- Writes behind messages that were kept, on whatever connection: once replicas have this, they have
-- the messages too.
-- KEYS   1 meta   2 bodies   3 keyed
-- ARGV   of messages that nobody was shown yet the ids, or "key:id", which is kept in the same step
-- Reply  1; 0 if one of them is not here, and nothing is written: it may be another server
-- Cost   O(messages)
-- Repeat writes again, which is what it is for. It needs no epoch: it says what is, for anybody.
for _, witness in ipairs(ARGV) do
    local key, id = string.match(witness, '^(.+):(%d+)$')
    if key then
        if redis.call('HGET', KEYS[3], key) ~= id then
            return 0
        end
    elseif redis.call('HEXISTS', KEYS[2], witness) == 0 then
        return 0
    end
end
redis.call('HSET', KEYS[1], 'confirmed', ARGV[#ARGV])
return 1
