#!lua
-- Makes dead letters messages again: each letter is marked as replayed and, if its receiver is a
-- durable session, stands in that session's queue, in one step.
-- KEYS   1 meta   2 bodies   3 refs   4 dead   5 sessions   6 the job, then queues
-- ARGV   1 epoch   2 id of the job, then for each letter: id, id of the message, entry, first line
--        of the message, key of the session, position of its queue in KEYS (0: not durable)
-- Reply  for each letter: taken; gone: there is no such letter; replayed: not new any more;
--        waiting: the message stands in the queue already; receiver: there is no such session
-- Cost   O(letters)
-- Repeat replies the same for what this job took, and brings back an entry that something repeated
--        before this has removed. An entry that was settled meanwhile comes back for a moment: what
--        settled it is repeated behind this.
local dead, job = KEYS[4], ARGV[2]

-- Whether the message stands in the queue because of us.
local function put(at, queue, record, head)
    if redis.call('HSETNX', queue, ARGV[at + 1], ARGV[at + 2]) == 0 then
        return false
    end
    refer(ARGV[at + 1], ARGV[at + 3] .. string.sub(record, head + 1), 1)
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
    local queue = KEYS[tonumber(ARGV[at + 5])]
    if queue then
        if redis.call('HEXISTS', KEYS[5], ARGV[at + 4]) == 0 then
            return is_ours and 'taken' or 'receiver'
        end
        if not put(at, queue, record, string.find(record, '\n', status + 1, true)) then
            return is_ours and 'taken' or 'waiting'
        end
    end
    if not is_ours then
        status = 'replayed ' .. (replays + 1) .. ' ' .. job .. string.sub(record, status)
        redis.call('HSET', dead, ARGV[at], status)
        redis.call('HINCRBY', KEYS[6], 'replayed', 1)
    end
    return 'taken'
end

local results = {}
for at = 3, #ARGV, 6 do
    results[#results + 1] = take(at)
end
return results
