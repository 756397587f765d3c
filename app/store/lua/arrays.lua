-- Commands with any number of arguments.

-- The longest array that is passed to a command.
local MOST = 1000

-- Runs a command on a key with these arguments of the call; returns the sum of its replies.
local function call(command, key, first, last)
    local sum = 0
    for from = first, last, MOST do
        sum = sum + redis.call(command, key, unpack(ARGV, from, math.min(from + MOST - 1, last)))
    end
    return sum
end
