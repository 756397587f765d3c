#!lua flags=allow-oom
-- Moves entries between queues: each leaves one queue and enters others, with its mark.
-- KEYS   1 meta   2 last batches, then receivers of messages and marks of sessions
-- ARGV   1 epoch, then for each message: id, position of its receivers in KEYS, name of the queue
--        that it leaves, position of its marks, new mark, number of queues that have it then, number
--        of those that it enters, number of those that get the mark, names of the queues, in this
--        order, positions of the marks
-- Reply  OK
-- Cost   O(entries + last batches)
-- Repeat moves what a repeated earlier call has brought back. An entry that was settled meanwhile
--        comes back for a moment: the settling call is repeated after this. Entries that moved
--        already get their marks again, because a repeated earlier call may have removed them.

-- Takes the message out of the last batch of a session: it settled the message before, and would
-- seem to have it in flight again. A zero keeps the places of the others.
local function take_out(session, id)
    local batch = redis.call('HGET', KEYS[2], session)
    local from, to = ((batch or '') .. ' '):find(' ' .. id .. ' ', 1, true)
    if from then
        redis.call('HSET', KEYS[2], session, batch:sub(1, from) .. '0' .. batch:sub(to))
    end
end

local at = 2
while at <= last do
    local id, receivers = ARGV[at], KEYS[tonumber(ARGV[at + 1])]
    local names = at + 8
    local marks = names + tonumber(ARGV[at + 5])
    local behind = marks + tonumber(ARGV[at + 7])
    if redis.call('SISMEMBER', receivers, ARGV[at + 2]) == 1 then
        for i = names, names + tonumber(ARGV[at + 6]) - 1 do
            take_out(ARGV[i], id)
        end
        call('SADD', receivers, names, marks - 1)
        redis.call('SREM', receivers, ARGV[at + 2])
        redis.call('HDEL', KEYS[tonumber(ARGV[at + 3])], id)
    end
    for i = marks, behind - 1 do
        if redis.call('SISMEMBER', receivers, ARGV[names + i - marks]) == 1 then
            redis.call('HSET', KEYS[tonumber(ARGV[i])], id, ARGV[at + 4])
        end
    end
    at = behind
end
journal()
return redis.status_reply('OK')
