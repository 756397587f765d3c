-- Begins every script that writes. Who may write has the epoch; whoever had it before is too late,
-- and without one the store has lost what it knew: in both cases nothing is done.
-- KEYS[1] meta   ARGV[1] epoch
local epoch = redis.call('HGET', KEYS[1], 'epoch')
if epoch ~= ARGV[1] then
    return redis.error_reply('EPOCH ' .. (epoch or 'gone'))
end
