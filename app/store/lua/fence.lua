-- The first part of every script that writes. Only the process with the current epoch may write. A
-- store without an epoch has lost its state. In both cases nothing is done.
-- KEYS[1] meta   ARGV[1] epoch
local epoch = redis.call('HGET', KEYS[1], 'epoch')
if epoch ~= ARGV[1] then
    return redis.error_reply('EPOCH ' .. (epoch or 'gone'))
end
