-- Lets a script store a message for the sessions that do not have it yet.
-- KEYS   2 bodies
-- ARGV   from here on: id, position of its
-- receivers in KEYS, body, generation ('' if never replayed, '@' if only one session is to get it),
-- number of sessions, their names; if replayed, the positions of their marks in KEYS. Returns the
-- position behind the message.
local function enter(at)
    local id, receivers, generation = ARGV[at], KEYS[tonumber(ARGV[at + 1])], ARGV[at + 3]
    local count = tonumber(ARGV[at + 4])
    local first, behind, added = at + 5, at + 5 + count, 0
    if generation == '@' and redis.call('HSETNX', KEYS[2], id, ARGV[at + 2]) == 1 then
        return behind
    end
    if generation == '' or generation == '@' then
        added = call('SADD', receivers, first, behind - 1)
    else
        if redis.call('EXISTS', receivers) == 0 then
            spread(id, receivers)
        end
        for i = first, behind - 1 do
            if redis.call('SADD', receivers, ARGV[i]) == 1 then
                redis.call('HSET', KEYS[tonumber(ARGV[i + count])], id, generation)
                added = added + 1
            end
        end
        behind = behind + count
    end
    if added > 0 and redis.call('HSETNX', KEYS[2], id, ARGV[at + 2]) == 0 then
        if redis.call('SCARD', receivers) == added then
            spread(id, receivers)
        end
    end
    return behind
end
