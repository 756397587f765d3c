#!lua
-- Turns dead letters back into messages: marks each letter as replayed and, if its receiver is a
-- durable session, adds the message to its queue, in one step.
-- KEYS   1 meta   2 bodies   3 dead   4 sessions   5 the job, then receivers of messages and marks
-- ARGV   1 its number   2 id of the job, then for each letter: id, id of the message, its generation,
--        first line of the message, or all of it if it is not the letter's own; name of the
--        session, positions of the message's receivers (0: the session is not durable) and of
--        the session's marks
--        A note has a first line, then a line for each letter. The lines of the letters that are
--        taken now go into the journal's note, which ends with "]]".
-- Reply  the last call before this one, then for each letter: taken; gone: no such letter; replayed: no longer new; waiting: the
--        message is already in the session's queue; receiver: no such session
-- Cost   O(letters)
-- Repeat does nothing, and replies what it did before.
local dead, job = KEYS[3], ARGV[2]
local lines, recorded = {}, {}
for line in string.gmatch(note or '', '[^\n]+') do
    lines[#lines + 1] = line
end

-- Adds the message to the session's queue; returns whether this job has put it there.
local function put(at, receivers, record, head)
    local id = ARGV[at + 1]
    if redis.call('EXISTS', receivers) == 0 then
        spread(id, receivers)
    end
    if redis.call('SADD', receivers, ARGV[at + 4]) == 0 then
        return false
    end
    local message = ARGV[at + 3]
    if string.sub(message, -1) == '\n' then
        message = message .. string.sub(record, head + 1)
    end
    redis.call('HSETNX', KEYS[2], id, message)
    redis.call('HSET', KEYS[tonumber(ARGV[at + 6])], id, ARGV[at + 2])
    return true
end

local function take(at)
    local record = redis.call('HGET', dead, ARGV[at])
    if not record then
        return 'gone'
    end
    local state, replays, taker = string.match(record, '^(%a+) (%d+) (%S+)\n')
    if state ~= 'new' then
        return taker == job and 'taken' or 'replayed'
    end
    local status = string.find(record, '\n', 1, true)
    local receivers = KEYS[tonumber(ARGV[at + 5])]
    if receivers then
        -- A work queue needs no record.
        local is_queue = string.sub(ARGV[at + 4], 1, 5) == 'work:'
        if not is_queue and redis.call('HEXISTS', KEYS[4], ARGV[at + 4]) == 0 then
            return 'receiver'
        end
        local head = string.find(record, '\n', status + 1, true)
        if is_repeat or not put(at, receivers, record, head) then
            return 'waiting'
        end
    end
    status = 'replayed ' .. (replays + 1) .. ' ' .. job .. string.sub(record, status)
    redis.call('HSET', dead, ARGV[at], status)
    redis.call('HINCRBY', KEYS[5], 'replayed', 1)
    recorded[#recorded + 1] = lines[(at - 3) / 7 + 2]
    return 'taken'
end

local results = { before }
for at = 3, last, 7 do
    results[#results + 1] = take(at)
end
if #recorded > 0 then
    note = lines[1] .. table.concat(recorded, ',') .. ']]'
    journal()
end
return results
