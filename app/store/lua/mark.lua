#!lua flags=allow-oom
-- Stores the marks of entries; ignores entries that do not exist.
-- KEYS   1 meta   2 bodies, then marks of sessions and receivers of messages
-- ARGV   1 its number, then for each session: position of its marks in KEYS, its name, number of
--        entries, then for each of them: id, position of its receivers in KEYS, mark
-- Reply  the last call before this one
-- Cost   O(entries)
-- Repeat does nothing.
local at = 2
while at <= last do
    local marks, key, count = KEYS[tonumber(ARGV[at])], ARGV[at + 1], tonumber(ARGV[at + 2])
    at = at + 3
    for i = at, at + 3 * count - 1, 3 do
        if waits(ARGV[i], KEYS[tonumber(ARGV[i + 1])], key) then
            local found = redis.call('HGET', marks, ARGV[i])
            local generation = found and string.match(found, 'g%d+$') or ''
            redis.call('HSET', marks, ARGV[i], ARGV[i + 2] .. generation)
        end
    end
    at = at + 3 * count
end
journal()
return before
