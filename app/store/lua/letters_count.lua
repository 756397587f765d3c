#!lua flags=no-writes
-- Counts dead letters between bounds.
-- KEYS   1 index
-- ARGV   ids, the bounds of the ranges
-- Reply  number of letters from each id up to, but not including, the next
-- Cost   O(bounds x log(letters))
-- Repeat reads again.
local counts = {}
for i = 1, #ARGV - 1 do
    counts[i] = redis.call('ZLEXCOUNT', KEYS[1], '[' .. ARGV[i], '(' .. ARGV[i + 1])
end
return counts
