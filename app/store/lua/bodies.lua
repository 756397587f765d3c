-- A message stands in the store once, for as long as somebody waits for it: its body, and the set of
-- sessions that it is for. So what happens to it for many of them is one command.
-- KEYS[2] bodies

-- Somebody has stopped waiting for the message: if nobody is left, it goes.
local function release(id, receivers)
    if redis.call('EXISTS', receivers) == 0 then
        redis.call('HDEL', KEYS[2], id)
    end
end
