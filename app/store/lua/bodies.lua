-- Bodies of messages live as long as a queue refers to them. A count stands only where more than
-- one does, for most messages of most deployments have one receiver that is away.
-- KEYS[2] bodies   KEYS[3] refs

-- The queues that refer to a message have become this many more.
local function refer(id, body, more)
    local count = more
    if redis.call('HSETNX', KEYS[2], id, body) == 0 then
        count = count + tonumber(redis.call('HGET', KEYS[3], id) or 1)
    end
    if count > 1 then
        redis.call('HSET', KEYS[3], id, count)
    end
end

-- So many queues less, or one, refer to a message.
local function release(id, fewer)
    local count = tonumber(redis.call('HGET', KEYS[3], id) or 1) - (fewer or 1)
    if count > 1 then
        redis.call('HSET', KEYS[3], id, count)
        return
    end
    redis.call('HDEL', KEYS[3], id)
    if count < 1 then
        redis.call('HDEL', KEYS[2], id)
    end
end
