-- Lets a script leave its call's note for the journal, in the same step as what it changes. Frames
-- take the place of notes soon.
-- KEYS   behind all others the node's notes
-- ARGV   behind all others number of the note, the note
local notes, note = table.remove(KEYS), table.remove(ARGV)
local number = table.remove(ARGV)

local function journal()
    redis.call('HSETNX', notes, number, note)
end
