-- For calls without a note.
local last_key, last = #KEYS, #ARGV
local note

local function journal()
end
