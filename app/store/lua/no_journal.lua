-- The call carries no frame.
local function journal()
end
