#!lua flags=allow-oom
-- Remembers of sessions what was handed over to them last, for the first time and while they had
-- nothing else in hands. What of that is settled meanwhile means nothing any more.
-- KEYS   1 meta   2 handed
-- ARGV   1 epoch, then for each session: its key, the batch with its messages
-- Reply  OK
-- Cost   O(entries)
-- Repeat changes nothing, if what is behind it is repeated too.
call('HSET', KEYS[2], 2, last)
journal()
return redis.status_reply('OK')
