#!lua flags=allow-oom
-- Removes frames from the log of this shard: its beginning, and further ones that no shard needs which
-- is still before them. Behind such, a frame has a link: the place from which readers go on with it.
-- KEYS   1 meta   2 the log   3 links of frames
-- ARGV   1 its number   2 id of the first frame that stays   3 number of further frames to remove, then
--        their ids; then frames with links: id and place, '' to remove the link
-- Reply  the last call before this one
-- Cost   O(removed frames)
-- Repeat does nothing.
local log = KEYS[2]
redis.call('XTRIM', log, 'MINID', ARGV[2])
local links = 4 + tonumber(ARGV[3])
call('XDEL', log, 4, links - 1)
for i = links, #ARGV, 2 do
    if ARGV[i + 1] == '' then
        redis.call('HDEL', KEYS[3], ARGV[i])
    else
        redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 1])
    end
end

local function is_behind(id, other)
    local fence, n = string.match(id, '^(%d+)-(%d+)$')
    local other_fence, other_n = string.match(other, '^(%d+)-(%d+)$')
    fence, other_fence = tonumber(fence), tonumber(other_fence)
    return fence > other_fence or (fence == other_fence and tonumber(n) > tonumber(other_n))
end

-- Openings without frames are listed no more. The newest one stays, for readers at its end.
local openings = {}
for opening in string.gmatch(redis.call('HGET', KEYS[1], 'openings') or '', '[^,]+') do
    openings[#openings + 1] = opening
end
while openings[2] and not is_behind(string.match(openings[2], '%S+$'), ARGV[2]) do
    table.remove(openings, 1)
end
if openings[1] then
    redis.call('HSET', KEYS[1], 'openings', table.concat(openings, ','))
end
return before
