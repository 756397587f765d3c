#!lua flags=allow-oom
-- Removes entries, and messages with their last entry.
-- KEYS   1 meta   2 bodies, then the receivers of the messages
-- ARGV   1 its number, then for each message, in the order of KEYS: id, number of sessions, their names
-- Reply  the last call before this one
-- Cost   O(entries)
-- Repeat does nothing.
local at = 2
for i = 3, last_key do
    local count = tonumber(ARGV[at + 1])
    if call('SREM', KEYS[i], at + 2, at + 1 + count) > 0 then
        release(ARGV[at], KEYS[i])
    else
        local session = alone(ARGV[at])
        for j = at + 2, at + 1 + count do
            if ARGV[j] == session then
                redis.call('HDEL', KEYS[2], ARGV[at])
            end
        end
    end
    at = at + 2 + count
end
journal()
return before
