#!lua flags=allow-oom
-- Raises the lease of the only writer, for others to see that it lives.
-- KEYS   1 meta
-- ARGV   1 epoch
-- Reply  the epoch in force, '' if there is none: if it is another one, nothing is raised
-- Cost   O(1)
-- Repeat raises the lease once more, which does no harm.
local epoch = redis.call('HGET', KEYS[1], 'epoch')
if epoch == ARGV[1] then
    redis.call('HINCRBY', KEYS[1], 'lease', 1)
end
return epoch or ''
