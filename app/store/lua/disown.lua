#!lua flags=allow-oom
-- Removes the publish keys of messages that are not stored after all.
-- KEYS   1 meta   2 keyed
-- ARGV   1 epoch, then for each message: key, id
-- Reply  OK
-- Cost   O(messages)
-- Repeat finds nothing to forget.
for at = 2, #ARGV, 2 do
    local found = redis.call('HGET', KEYS[2], ARGV[at]) or ''
    if string.match(found, '^%d+') == ARGV[at + 1] then
        redis.call('HDEL', KEYS[2], ARGV[at])
    end
end
return redis.status_reply('OK')
