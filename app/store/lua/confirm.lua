#!lua flags=allow-oom
-- Writes after stored messages, on any connection: replicas that have this write have the messages
-- too.
-- KEYS   1 meta   2 bodies   3 keyed
-- ARGV   nothing, to ask whether replicas answer; or for each message its id; "key:id" if it has a publish key, stored in the same step; or the
--        name of the call that stored it, if it is in no queue here
-- Reply  1; 0 and no write if one is missing, because this may be another server
-- Cost   O(messages)
-- Repeat writes again, as intended. It needs no epoch: it only records what is stored already.
for _, stored_id in ipairs(ARGV) do
    local key, id = string.match(stored_id, '^(.+):(%d+)$')
    local process = string.match(stored_id, '^(%w+%-)%d+$')
    if process then
        -- Numbers of calls have equally many digits.
        local last = redis.call('HGET', KEYS[1], 'call') or ''
        if string.sub(last, 1, #process) ~= process or last < stored_id then
            return 0
        end
    elseif key then
        if string.match(redis.call('HGET', KEYS[3], key) or '', '^%d+') ~= id then
            return 0
        end
    elseif redis.call('HEXISTS', KEYS[2], stored_id) == 0 then
        return 0
    end
end
redis.call('HSET', KEYS[1], 'confirmed', ARGV[#ARGV] or '')
return 1
