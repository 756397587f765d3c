#!lua flags=allow-oom
-- Appends a frame again that the log of this shard had before the store went back, as it was: readers
-- that have taken it go on behind it, and all others take it now.
-- KEYS   1 meta   2 the log
-- ARGV   1 its number   2 the place before the frame   3 the place behind it   4 parts of the frame by
--        name
-- Reply  the last call before this one
-- Cost   O(bytes of the frame)
-- Repeat does nothing, and so does a frame that is not behind the end of the log.
local function numbers_of(place)
    local fence, n = string.match(place, '^%w+ (%d+)%-(%d+) ')
    return tonumber(fence or 0), tonumber(n or 0)
end

local meta, log, place = KEYS[1], KEYS[2], ARGV[3]
local last = redis.call('HGET', meta, 'log') or ''
local fence, n = numbers_of(place)
local last_fence, last_n = numbers_of(last)
if fence < last_fence or (fence == last_fence and n <= last_n) then
    return before
end
local nonce, id = string.match(place, '^(%w+) (%S+)')
if string.sub(last, 1, #nonce) ~= nonce then
    -- The log had lost this opening.
    local openings = redis.call('HGET', meta, 'openings')
    redis.call('HSET', meta, 'openings', (openings and openings .. ',' or '') .. nonce .. ' ' .. id)
end
redis.call('XADD', log, id, 'before', ARGV[2], 'place', place, unpack(ARGV, 4))
redis.call('HSET', meta, 'log', place)
return before
