#!lua flags=allow-oom
-- Removes sessions, and how far their entries have come. What they still wait for is settled behind
-- this; until then it belongs to nobody, as whoever loads the store next will see.
-- KEYS   1 meta   2 sessions   3 handed, then marks of the sessions
-- ARGV   1 epoch, then the keys of the sessions, in the order of their marks
-- Reply  OK
-- Cost   O(sessions); what they had is freed elsewhere
-- Repeat finds nothing to remove. A session that was saved again meanwhile comes back: that was
--        called later, so it was not answered either and is repeated behind this.
for i = 2, last do
    redis.call('HDEL', KEYS[2], ARGV[i])
    redis.call('HDEL', KEYS[3], ARGV[i])
    redis.call('UNLINK', KEYS[i + 2])
end
journal()
return redis.status_reply('OK')
