#!lua flags=no-writes
-- Counts dead letters between bounds.
-- KEYS   1 index
-- ARGV   ids, each of them the beginning of what the next one ends
-- Reply  how many letters there are from each id to before the next
-- Cost   O(bounds x log(letters))
-- Repeat reads again.
local counts = {}
for i = 1, #ARGV - 1 do
    counts[i] = redis.call('ZLEXCOUNT', KEYS[1], '[' .. ARGV[i], '(' .. ARGV[i + 1])
end
return counts
