#!lua flags=allow-oom
-- Saves and removes what is stored of channels, their holds, topics or floors, of requests, past
-- figures, or what a process gives to the next one.
-- KEYS   1 meta   2 held, topics, floors, requests, figures or given
-- ARGV   1 its number, then for each field: its name, the value, or '' to remove it
-- Reply  the last call before this one
-- Cost   O(fields)
-- Repeat does nothing.
for i = 2, #ARGV, 2 do
    if ARGV[i + 1] == '' then
        redis.call('HDEL', KEYS[2], ARGV[i])
    else
        redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
    end
end
return before
