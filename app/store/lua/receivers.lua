#!lua flags=no-writes
-- Reads which sessions wait for messages.
-- KEYS   the receivers of each message
-- ARGV   1 most names
-- Reply  for each message an array of names; ends early, after at least one message, when it has so
--        many names: ask again for the others.
-- Cost   O(names returned)
-- Repeat reads again.
local found, read, most = {}, 0, tonumber(ARGV[1])
for at, key in ipairs(KEYS) do
    found[at] = redis.call('SMEMBERS', key)
    read = read + #found[at]
    if read >= most then
        break
    end
end
return found
