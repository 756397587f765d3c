-- Stores hand-overs that follow at once, together with their messages. ARGV from here on: the number of
-- words about sessions, and if there are any, the position of the last batches in KEYS, the random text
-- of the incarnation that makes them, and each session with its batch. Returns the position behind.
local function hand_over(at)
    local words = tonumber(ARGV[at])
    if words == 0 then
        return at + 1
    end
    -- Another incarnation has forgotten them, and may have handed over something else since.
    if ARGV[at + 2] == string.match(ARGV[1], '^%S+ (%w+)%-') then
        call('HSET', KEYS[tonumber(ARGV[at + 1])], at + 3, at + 2 + words)
    end
    return at + 3 + words
end
