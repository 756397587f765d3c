#!lua flags=allow-oom
-- Trims the beginning of a journal, and counts the removed frames: readers then recognise what
-- others have removed. It notes the time, by which they recognise a server that has nothing to do.
-- KEYS   1 meta   2 stream   3 progress of readers: name -> id of an entry
-- ARGV   1 its number   2 remove entries before this id if all readers have them   3 remove entries
--        before this id   4 most bytes of the journal   5 time: ms since 1970
-- Reply  the last call before this one, number of removed frames that all had read, of other removed frames, and of readers
-- Cost   O(removed frames + readers)
-- Repeat does nothing, and replies that nothing was removed.
local stream = KEYS[2]
if is_repeat then
    return { before, 0, 0, redis.call('HLEN', KEYS[3]) }
end

local function is_before(id, other)
    local ms, n = string.match(id, '^(%d+)-(%d+)$')
    local other_ms, other_n = string.match(other, '^(%d+)-(%d+)$')
    ms, other_ms = tonumber(ms), tonumber(other_ms)
    return ms < other_ms or (ms == other_ms and tonumber(n) < tonumber(other_n))
end

-- Returns the id behind which a reader still lacks entries, at most the bound; nil without readers.
local function unread()
    local first
    for _, id in ipairs(redis.call('HVALS', KEYS[3])) do
        if string.match(id, '^%d+-%d+$') and (not first or is_before(id, first)) then
            first = id
        end
    end
    if not first or not is_before(first, ARGV[2]) then
        return first and ARGV[2]
    end
    local ms, n = string.match(first, '^(%d+)-(%d+)$')
    return string.format('%s-%.0f', ms, tonumber(n) + 1)
end

redis.call('HSET', KEYS[1], 'heard ' .. stream, ARGV[5])
local from = unread()
local read = from and redis.call('XTRIM', stream, 'MINID', from) or 0
local others = redis.call('XTRIM', stream, 'MINID', ARGV[3])
local size, most = redis.call('MEMORY', 'USAGE', stream) or 0, tonumber(ARGV[4])
if size > most then
    local left = math.floor(redis.call('XLEN', stream) * most / size)
    others = others + redis.call('XTRIM', stream, 'MAXLEN', left)
end
-- A journal that an older server began has no count.
if redis.call('HEXISTS', KEYS[1], 'trimmed ' .. stream) == 1 then
    redis.call('HINCRBY', KEYS[1], 'trimmed ' .. stream, read + others)
end
return { before, read, others, redis.call('HLEN', KEYS[3]) }
