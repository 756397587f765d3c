#!lua flags=allow-oom
-- Moves entries between the queues of one subject: each leaves one queue and enters others.
-- KEYS   1 meta, then receivers of messages and marks of sessions
-- ARGV   1 epoch, then for each message: id, position of its receivers in KEYS, name of the queue
--        that it leaves, position of its marks, number of queues that it enters, their names
-- Reply  OK
-- Cost   O(entries)
-- Repeat finds nothing to move, or moves what a repeated earlier call has brought back. An entry
--        that was settled meanwhile comes back for a moment: the settling call is repeated after
--        this.
local at = 2
while at <= last do
    local receivers, count = KEYS[tonumber(ARGV[at + 1])], tonumber(ARGV[at + 4])
    if redis.call('SISMEMBER', receivers, ARGV[at + 2]) == 1 then
        call('SADD', receivers, at + 5, at + 4 + count)
        redis.call('SREM', receivers, ARGV[at + 2])
        redis.call('HDEL', KEYS[tonumber(ARGV[at + 3])], ARGV[at])
    end
    at = at + 5 + count
end
journal()
return redis.status_reply('OK')
