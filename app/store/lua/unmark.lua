#!lua flags=allow-oom
-- Removes the marks of entries that were removed before. If the process is killed before this call,
-- the next one to load the store does it.
-- KEYS   1 meta, then marks of sessions
-- ARGV   1 its number, then for each session, in the order of KEYS: number of entries, their ids
-- Reply  the last call before this one
-- Cost   O(entries)
-- Repeat does nothing.
local at = 2
for i = 2, #KEYS do
    local count = tonumber(ARGV[at])
    call('HDEL', KEYS[i], at + 1, at + count)
    at = at + 1 + count
end
return before
