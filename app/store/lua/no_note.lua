-- The call carries no note.
local note
local function journal()
end
