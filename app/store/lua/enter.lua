-- Begins every script that keeps messages.
-- KEYS   1 meta   2 bodies   3 refs
-- ARGV   2 id of the newest message
local newest = redis.call('HGET', KEYS[1], 'newest')
if not newest or newest < ARGV[2] then
    redis.call('HSET', KEYS[1], 'newest', ARGV[2])
end

-- A message in ARGV from here on: id, entry ('' or its generation), body, number of queues, their
-- positions in KEYS. It enters the queues where it is not yet.
local function enter(at)
    local id, added = ARGV[at], 0
    for i = at + 4, at + 3 + tonumber(ARGV[at + 3]) do
        added = added + redis.call('HSETNX', KEYS[tonumber(ARGV[i])], id, ARGV[at + 1])
    end
    if added > 0 then
        refer(id, ARGV[at + 2], added)
    end
end

-- Where in ARGV it ends.
local function behind(at)
    return at + 4 + tonumber(ARGV[at + 3])
end
