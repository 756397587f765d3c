-- Lets a script leave its call's note for the journal, in the same step as its change. A frame soon
-- replaces the note.
-- KEYS   last: the node's notes
-- ARGV   last: number of the note, the note
-- The number of the script's own keys and arguments.
local last_key, last = #KEYS - 1, #ARGV - 2
local note = ARGV[last + 2]

local function journal()
    redis.call('HSETNX', KEYS[last_key + 1], ARGV[last + 1], note)
end
