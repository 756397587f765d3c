-- A message is stored once, while sessions wait for it: its body, and the set of these sessions. So a
-- change for many sessions is one command. If only one is to get a message, there is no set: then the
-- body begins with '@', and behind eight bytes of checksums come four for the name of the session,
-- the name, and a line break. Longer bodies always have a set, because this is read here.
-- KEYS[2] bodies

-- Returns the only session that a message is for, its body, and where the body goes on behind the
-- name; nothing if it has a set, or is not there.
local function alone(id)
    local found = redis.call('HGET', KEYS[2], id)
    if found and string.byte(found) == 64 then
        local ends = string.find(found, '\n', 14, true)
        return string.sub(found, 14, ends - 1), found, ends + 1
    end
end

-- Returns whether the session waits for the message.
local function waits(id, receivers, session)
    return redis.call('SISMEMBER', receivers, session) == 1 or alone(id) == session
end

-- Gives a message without a set one with its session, because others are to get it, too.
local function spread(id, receivers)
    local session, found, from = alone(id)
    if session then
        redis.call('SADD', receivers, session)
        redis.call('HSET', KEYS[2], id,
            '#' .. string.sub(found, 2, 9) .. string.sub(found, from))
    end
end

-- Removes the message when no session waits for it any more.
local function release(id, receivers)
    if redis.call('EXISTS', receivers) == 0 then
        redis.call('HDEL', KEYS[2], id)
    end
end

-- Removes the entry of a session, and the message with its last entry.
local function leave(id, receivers, session)
    if redis.call('SREM', receivers, session) == 1 then
        release(id, receivers)
    elseif alone(id) == session then
        redis.call('HDEL', KEYS[2], id)
    end
end
