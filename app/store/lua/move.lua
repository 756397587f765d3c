#!lua flags=allow-oom
-- Moves entries between queues: each leaves one queue and enters others, with its mark. Without
-- others, another shard has the message.
-- KEYS   1 meta   2 bodies   3 last batches, then receivers of messages and marks of sessions
-- ARGV   1 its number, then for each message: id, position of its receivers in KEYS, name of the queue
--        that it leaves, position of its marks, new mark, number of queues that have it then, number
--        of those that it enters, number of those that get the mark, the name of the only queue with
--        its checksum, '' if there are others; names of the queues, in this order, positions of the
--        marks
-- Reply  the last call before this one
-- Cost   O(entries + last batches)
-- Repeat does nothing.

-- Takes the message out of the last batch of a session: it settled the message before, and would
-- seem to have it in flight again. A zero keeps the places of the others.
local function take_out(session, id)
    local batch = redis.call('HGET', KEYS[3], session)
    local from, to = ((batch or '') .. ' '):find(' ' .. id .. ' ', 1, true)
    if from then
        redis.call('HSET', KEYS[3], session, batch:sub(1, from) .. '0' .. batch:sub(to))
    end
end

local at = 2
while at <= last do
    local id, receivers = ARGV[at], KEYS[tonumber(ARGV[at + 1])]
    local names = at + 9
    local marks = names + tonumber(ARGV[at + 5])
    local behind = marks + tonumber(ARGV[at + 7])
    local is_there, session, found, from = redis.call('SISMEMBER', receivers, ARGV[at + 2]) == 1
    if not is_there then
        session, found, from = alone(id)
        is_there = session == ARGV[at + 2]
    end
    if is_there then
        for i = names, names + tonumber(ARGV[at + 6]) - 1 do
            take_out(ARGV[i], id)
        end
        if session and marks - names == 1 then
            redis.call('HSET', KEYS[2], id,
                string.sub(found, 1, 9) .. ARGV[at + 8] .. '\n' .. string.sub(found, from))
        else
            if session then
                spread(id, receivers)
            end
            call('SADD', receivers, names, marks - 1)
            redis.call('SREM', receivers, ARGV[at + 2])
            release(id, receivers)
        end
        redis.call('HDEL', KEYS[tonumber(ARGV[at + 3])], id)
    end
    -- Entries that moved before get their marks again: a server whose store went back repeats its
    -- last calls, and one before this may have removed them.
    for i = marks, behind - 1 do
        if waits(id, receivers, ARGV[names + i - marks]) then
            redis.call('HSET', KEYS[tonumber(ARGV[i])], id, ARGV[at + 4])
        end
    end
    at = behind
end
journal()
return before
