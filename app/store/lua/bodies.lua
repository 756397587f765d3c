-- A message is stored once, while sessions wait for it: its body, and the set of these sessions.
-- So a change for many sessions is one command.
-- KEYS[2] bodies

-- Removes the message when no session waits for it any more.
local function release(id, receivers)
    if redis.call('EXISTS', receivers) == 0 then
        redis.call('HDEL', KEYS[2], id)
    end
end
