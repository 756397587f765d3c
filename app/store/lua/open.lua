#!lua flags=allow-oom
-- Makes the caller the one who may write.
-- KEYS   1 meta   2 handed
-- ARGV   1 version of the layout   2 a random seed, for a store that has none   3 name of the node
-- Reply  epoch, id of the newest message or dead letter ('' if there was none)
-- Cost   O(1)
-- Repeat gives a new epoch: the latest reply counts.
local meta, version, seed, node = KEYS[1], ARGV[1], ARGV[2], ARGV[3]

local found = redis.call('HGET', meta, 'version')
if found and found ~= version then
    return redis.error_reply('VERSION ' .. found)
end
redis.call('HSETNX', meta, 'seed', seed)
local fence = redis.call('HINCRBY', meta, 'fence', 1)
local epoch = redis.call('HGET', meta, 'seed') .. '-' .. fence
redis.call('HSET', meta, 'version', version, 'node', node, 'epoch', epoch)
-- A long value makes it a table at once, whatever its size: in a list each session is searched for.
redis.call('HSET', KEYS[2], '', string.rep(' ', 65))
return { epoch, redis.call('HGET', meta, 'newest') or '' }
