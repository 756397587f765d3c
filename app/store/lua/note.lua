-- Lets a script leave its call's note for the journal, in the same step as what it changes. Frames
-- take the place of notes soon.
-- KEYS   behind all others the node's notes
-- ARGV   behind all others number of the note, the note
-- Up to where keys and arguments are the script's own.
local last_key, last = #KEYS - 1, #ARGV - 2
local note = ARGV[last + 2]

local function journal()
    redis.call('HSETNX', KEYS[last_key + 1], ARGV[last + 1], note)
end
