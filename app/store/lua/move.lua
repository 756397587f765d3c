#!lua flags=allow-oom
-- Moves entries between the queues of one subject: each leaves one queue and enters others.
-- KEYS   1 meta, then the receivers of the messages
-- ARGV   1 epoch, then for each message, in the order of KEYS: name of the queue that it leaves,
--        number of queues that it enters, their names
-- Reply  OK
-- Cost   O(entries)
-- Repeat finds nothing to move, or moves what a repeated earlier call has brought back. An entry
--        that was settled meanwhile comes back for a moment: the settling call is repeated after
--        this.
local at = 2
for i = 2, last_key do
    local count = tonumber(ARGV[at + 1])
    if redis.call('SISMEMBER', KEYS[i], ARGV[at]) == 1 then
        call('SADD', KEYS[i], at + 2, at + 1 + count)
        redis.call('SREM', KEYS[i], ARGV[at])
    end
    at = at + 2 + count
end
journal()
return redis.status_reply('OK')
