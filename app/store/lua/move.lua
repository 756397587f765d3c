#!lua flags=allow-oom
-- Moves entries between queues: each leaves one queue and enters others, with its mark.
-- KEYS   1 meta, then receivers of messages and marks of sessions
-- ARGV   1 epoch, then for each message: id, position of its receivers in KEYS, name of the queue
--        that it leaves, position of its marks, new mark, number of queues that it enters, number
--        of those that get the mark, names of the queues, the first of them with the mark,
--        positions of the marks of these
-- Reply  OK
-- Cost   O(entries)
-- Repeat finds nothing to move, or moves what a repeated earlier call has brought back. An entry
--        that was settled meanwhile comes back for a moment: the settling call is repeated after
--        this.
local at = 2
while at <= last do
    local id, receivers = ARGV[at], KEYS[tonumber(ARGV[at + 1])]
    local marks = at + 7 + tonumber(ARGV[at + 5])
    local behind = marks + tonumber(ARGV[at + 6])
    if redis.call('SISMEMBER', receivers, ARGV[at + 2]) == 1 then
        call('SADD', receivers, at + 7, marks - 1)
        redis.call('SREM', receivers, ARGV[at + 2])
        redis.call('HDEL', KEYS[tonumber(ARGV[at + 3])], id)
        for i = marks, behind - 1 do
            redis.call('HSET', KEYS[tonumber(ARGV[i])], id, ARGV[at + 4])
        end
    end
    at = behind
end
journal()
return redis.status_reply('OK')
