-- Changes what is kept of requests. ARGV from `at` to `upto`: the name and value of each field, '' to
-- remove it.
local function change(requests, at, upto)
    for i = at, upto, 2 do
        if ARGV[i + 1] == '' then
            redis.call('HDEL', requests, ARGV[i])
        else
            redis.call('HSET', requests, ARGV[i], ARGV[i + 1])
        end
    end
end

