#!lua flags=allow-oom
-- Makes the caller the only writer.
-- KEYS   1 meta   2 handed
-- ARGV   1 version of the layout   2 the oldest version that this release reads, too
--        3 a random seed, for an empty store   4 name of the node
-- Reply  epoch, id of the newest message or dead letter ('' if there was none), time of the store's
--        clock, the version that was found ('' in an empty store)
-- Cost   O(1)
-- Repeat returns a new epoch: the latest reply counts.
local meta, version, oldest, seed, node = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local found = redis.call('HGET', meta, 'version')
local number = tonumber(found or version) or 0
if number < tonumber(oldest) or number > tonumber(version) then
    return redis.error_reply('VERSION ' .. found)
end
redis.call('HSETNX', meta, 'seed', seed)
local fence = redis.call('HINCRBY', meta, 'fence', 1)
local epoch = redis.call('HGET', meta, 'seed') .. '-' .. fence
redis.call('HSET', meta, 'version', version, 'node', node, 'epoch', epoch)
-- A long value turns the hash into a table at once; a listpack would be searched for each session.
redis.call('HSET', KEYS[2], '', string.rep(' ', 65))
return {
    epoch,
    redis.call('HGET', meta, 'newest') or '',
    redis.call('HGET', meta, 'clock') or '0',
    found or '',
}
