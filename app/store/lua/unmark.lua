#!lua flags=allow-oom
-- Forgets how far entries had come that were removed before this. If it is lost with who called it,
-- whoever loads the store next does it.
-- KEYS   1 meta, then marks of sessions
-- ARGV   1 epoch, then for each session, in the order of KEYS: number of entries, their ids
-- Reply  OK
-- Cost   O(entries)
-- Repeat finds nothing to forget.
local at = 2
for i = 2, #KEYS do
    local count = tonumber(ARGV[at])
    call('HDEL', KEYS[i], at + 1, at + count)
    at = at + 1 + count
end
return redis.status_reply('OK')
