-- Begins every script that keeps messages.
-- KEYS   1 meta   2 bodies   3 refs
-- ARGV   2 id of the newest message
local newest = redis.call('HGET', KEYS[1], 'newest')
if not newest or newest < ARGV[2] then
    redis.call('HSET', KEYS[1], 'newest', ARGV[2])
end

-- A message in ARGV from here on: id, entry ('' or its generation), body, number of queues, their
-- positions in KEYS. It enters the queues where it is not yet; where in ARGV it ends is returned.
local function enter(at)
    local id, entry, behind = ARGV[at], ARGV[at + 1], at + 4 + tonumber(ARGV[at + 3])
    local added = 0
    for i = at + 4, behind - 1 do
        added = added + redis.call('HSETNX', KEYS[tonumber(ARGV[i])], id, entry)
    end
    if added > 0 then
        refer(id, ARGV[at + 2], added)
    end
    return behind
end
