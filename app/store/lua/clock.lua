-- Lets a script advance the store's clock, which counts the seconds that servers have run.
-- KEYS   1 meta
local function advance(seconds)
    if tonumber(redis.call('HGET', KEYS[1], 'clock') or 0) < tonumber(seconds) then
        redis.call('HSET', KEYS[1], 'clock', seconds)
    end
end
