#!lua flags=allow-oom
-- Writes after stored messages, on any connection: replicas that have this write have the messages
-- too.
-- KEYS   1 meta   2 bodies   3 keyed
-- ARGV   for each message its id, or "key:id" if it has a publish key, stored in the same step
-- Reply  1; 0 and no write if one is missing, because this may be another server
-- Cost   O(messages)
-- Repeat writes again, as intended. It needs no epoch: it only records what is stored already.
for _, stored_id in ipairs(ARGV) do
    local key, id = string.match(stored_id, '^(.+):(%d+)$')
    if key then
        if string.match(redis.call('HGET', KEYS[3], key) or '', '^%d+') ~= id then
            return 0
        end
    elseif redis.call('HEXISTS', KEYS[2], stored_id) == 0 then
        return 0
    end
end
redis.call('HSET', KEYS[1], 'confirmed', ARGV[#ARGV])
return 1
