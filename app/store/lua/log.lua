-- Lets a script append its call's frame to the log of this shard, in the same step as its change. The
-- frame's id is the number of the opening and that of the call, so a repeat cannot append it again.
-- With each frame stand the places before and behind it: by these, readers recognise that they
-- lack none. A place is the opening's random text, the frame's id, and how many entries the log has
-- had.
-- The frame may have answers to letters of other shards, which leave the inbox then.
-- KEYS   last, before that of the note: the log, the inbox
-- ARGV   last, before those of the note: number of the frame's entries, parts of the frame by name (of
--        the reader, or 'all'), names of letters that are done, numbers of both
local words, letters = tonumber(ARGV[last - 1]), tonumber(ARGV[last])
-- The function for the note goes on using the former ones.
local last, last_key = last - words - letters - 3, last_key - 2
local frame_at, log, inbox = last + 2, KEYS[last_key + 1], KEYS[last_key + 2]
local leave_note = journal

local function journal()
    leave_note()
    local nonce, n = string.match(ARGV[1], '^%S+ (%w+)%-0*(%d+)')
    local found = redis.call('HMGET', KEYS[1], 'log', 'fence')
    local before, id = found[1] or '', found[2] .. '-' .. n
    local total = tonumber(string.match(before, '%d+$') or 0) + tonumber(ARGV[frame_at - 1])
    local place = nonce .. ' ' .. id .. ' ' .. string.format('%.0f', total)
    if string.sub(before, 1, #nonce) ~= nonce then
        -- The first frame of this opening.
        local openings = redis.call('HGET', KEYS[1], 'openings')
        openings = (openings and openings .. ',' or '') .. nonce .. ' ' .. id
        redis.call('HSET', KEYS[1], 'openings', openings)
    end
    redis.call('XADD', log, id, 'before', before, 'place', place,
        unpack(ARGV, frame_at, frame_at + words - 1))
    redis.call('HSET', KEYS[1], 'log', place)
    if letters > 0 then
        redis.call('HDEL', inbox, unpack(ARGV, frame_at + words, frame_at + words + letters - 1))
    end
end
