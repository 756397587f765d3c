-- The call carries no note.
local function journal()
end
