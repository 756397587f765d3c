#!lua flags=allow-oom
-- Removes sessions with what is left of their queues.
-- KEYS   1 meta   2 bodies   3 refs   4 sessions, then their queues
-- ARGV   1 epoch, then the keys of the sessions, in the order of their queues
-- Reply  OK
-- Cost   O(entries)
-- Repeat finds nothing to remove. A session that was saved again meanwhile comes back: that was
--        called later, so it was not answered either and is repeated behind this.
for i = 2, #ARGV do
    local queue = KEYS[i + 3]
    for _, id in ipairs(redis.call('HKEYS', queue)) do
        release(id)
    end
    redis.call('UNLINK', queue)
    redis.call('HDEL', KEYS[4], ARGV[i])
end
journal()
return redis.status_reply('OK')
