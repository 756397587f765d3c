-- Commands with as many arguments as there are.

-- An array is never longer than this when a command gets it.
local MOST = 1000

-- A command on a key with these arguments of the call; the sum of its replies.
local function call(command, key, first, last)
    local sum = 0
    for from = first, last, MOST do
        sum = sum + redis.call(command, key, unpack(ARGV, from, math.min(from + MOST - 1, last)))
    end
    return sum
end
