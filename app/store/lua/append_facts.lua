#!lua flags=allow-oom
-- Appends a frame of facts, answers or places to the log of this shard, and stores the facts: frames
-- are trimmed. Who reads the facts then reads the log from the place that stands with them.
-- KEYS   1 meta   2 facts   3 the log   4 the inbox
-- ARGV   1 its number, then the name and value of each fact, '' to remove it; then the frame, as in log
-- Reply  the last call before this one, the place behind the frame, or a later one
-- Cost   O(facts + bytes of the frame)
-- Repeat does nothing.
if is_repeat then
    return { before, redis.call('HGET', KEYS[1], 'log') }
end
journal()
for i = 2, last, 2 do
    if ARGV[i + 1] == '' then
        redis.call('HDEL', KEYS[2], ARGV[i])
    else
        redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
    end
end
local place = redis.call('HGET', KEYS[1], 'log')
if last > 1 then
    redis.call('HSET', KEYS[2], '', place)
end
return { before, place }
