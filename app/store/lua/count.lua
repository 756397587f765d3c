#!lua flags=allow-oom
-- Raises the counter by which other shards see that the only writer of an embedded store lives. No
-- opening asks for it, so it is not written to the disk.
-- KEYS   1 meta
-- ARGV   1 epoch
-- Reply  1, or 0 if another epoch is in force, or none: then nothing is raised
-- Cost   O(1)
-- Repeat raises the counter once more, which does no harm.
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then
    return 0
end
redis.set_repl(redis.REPL_NONE)
redis.call('HINCRBY', KEYS[1], 'lease', 1)
return 1
