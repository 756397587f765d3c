#!lua
-- Makes dead letters messages again: each letter is marked as replayed and, if its receiver is a
-- durable session, that waits for the message, in one step.
-- KEYS   1 meta   2 bodies   3 dead   4 sessions   5 the job, then receivers of messages and marks
-- ARGV   1 epoch   2 id of the job, then for each letter: id, id of the message, its generation,
--        first line of the message, or all of it if it is not the letter's own; key of the session,
--        positions of the message's receivers (0: the session is not durable) and of the session's
--        marks
--        A note has a line that begins it, then a line for each letter: what is told of one that is
--        taken now goes into the journal's note, and "]]" ends that.
-- Reply  for each letter: taken; gone: there is no such letter; replayed: not new any more;
--        waiting: the session waits for the message already; receiver: there is no such session
-- Cost   O(letters)
-- Repeat replies the same for what this job took, and brings back an entry that something repeated
--        before this has removed. An entry that was settled meanwhile comes back for a moment: what
--        settled it is repeated behind this.
local dead, job = KEYS[3], ARGV[2]
local lines, told = {}, {}
for line in string.gmatch(note or '', '[^\n]+') do
    lines[#lines + 1] = line
end

-- Whether the session waits for the message because of us.
local function put(at, receivers, record, head)
    local id = ARGV[at + 1]
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
    local is_ours = state == 'replayed' and taker == job
    if state ~= 'new' and not is_ours then
        return 'replayed'
    end
    local status = string.find(record, '\n', 1, true)
    local receivers = KEYS[tonumber(ARGV[at + 5])]
    if receivers then
        if redis.call('HEXISTS', KEYS[4], ARGV[at + 4]) == 0 then
            return is_ours and 'taken' or 'receiver'
        end
        if not put(at, receivers, record, string.find(record, '\n', status + 1, true)) then
            return is_ours and 'taken' or 'waiting'
        end
    end
    if not is_ours then
        status = 'replayed ' .. (replays + 1) .. ' ' .. job .. string.sub(record, status)
        redis.call('HSET', dead, ARGV[at], status)
        redis.call('HINCRBY', KEYS[5], 'replayed', 1)
        told[#told + 1] = lines[(at - 3) / 7 + 2]
    end
    return 'taken'
end

local results = {}
for at = 3, last, 7 do
    results[#results + 1] = take(at)
end
if #told > 0 then
    note = lines[1] .. table.concat(told, ',') .. ']]'
    journal()
end
return results
