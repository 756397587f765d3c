#!lua flags=allow-oom
-- Lets a shard enter a generation in which the deployment is divided otherwise. All of it must have
-- been written. Logs begin again: all that other shards needed of them is in the new generation.
-- KEYS   1 meta   2 the log   3 facts   4 links of frames   5 the inbox   6 the audit   7 the audit
--        in the new generation, if that of other shards comes to this one
-- ARGV   1 the generation   2 the epoch that must be in force, '' for any   3 whether the caller is the
--        first shard, which decides: then 4 the map of shards, 5 the table of homes, '' for none
-- Reply  1 if the shard enters it now, 0 if it is in it already; or an error: EPOCH if another process
--        has opened the shard, UNPREPARED if this shard has no such generation
-- Cost   O(1), and memory is freed in another thread
-- Repeat does nothing.
local meta, generation = KEYS[1], ARGV[1]
if redis.call('HGET', meta, 'generation') == generation then
    return 0
end
if ARGV[2] ~= '' and ARGV[2] ~= redis.call('HGET', meta, 'epoch') then
    return redis.error_reply('EPOCH another process has opened the store')
end
local ready, clock, stamped = string.match(redis.call('HGET', meta, 'next') or '', '^(%d+) (%d+) (%d+)$')
if ready ~= generation then
    return redis.error_reply('UNPREPARED the store has no generation ' .. generation)
end
redis.call('HSET', meta, 'generation', generation)
redis.call('HDEL', meta, 'next', 'log', 'openings')
for _, name in ipairs(redis.call('HKEYS', meta)) do
    if string.match(name, '^place %d+$') or string.match(name, '^passed %d+$') then
        redis.call('HDEL', meta, name)
    end
end
redis.call('UNLINK', KEYS[2], KEYS[3], KEYS[4], KEYS[5])
if ARGV[3] ~= '1' or ARGV[4] ~= '' then
    -- Until a process of this shard has told what its sessions subscribe to, others expect anything.
    redis.call('HSET', KEYS[3], 'untold', '1')
end
if tonumber(redis.call('HGET', meta, 'clock') or 0) < tonumber(clock) then
    redis.call('HSET', meta, 'clock', clock)
end
if (redis.call('HGET', meta, 'stamped') or '') < stamped then
    redis.call('HSET', meta, 'stamped', stamped)
end
if ARGV[3] == '1' then
    redis.call('HDEL', meta, 'shards', 'homes')
    if ARGV[4] ~= '' then
        redis.call('HSET', meta, 'shards', ARGV[4], 'homes', ARGV[5])
    end
end
if redis.call('EXISTS', KEYS[7]) == 1 then
    redis.call('RENAME', KEYS[7], KEYS[6])
end
return 1
