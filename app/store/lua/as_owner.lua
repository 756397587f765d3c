#!lua
-- Carries out commands for the only writer, if it does not number its calls: an offline tool.
-- KEYS   1 meta; the commands are about other keys of the same shard
-- ARGV   1 epoch   for each command: how many words it has, and these
-- Reply  what the commands answer; or the error EPOCH: another process has opened the store since, and
--        none was carried out
-- Cost   that of the commands
-- Repeat does what the commands do when they are repeated.
local epoch = redis.call('HGET', KEYS[1], 'epoch')
if epoch ~= ARGV[1] then
    return redis.error_reply('EPOCH ' .. (epoch or 'gone'))
end
local replies, at = {}, 2
while at <= #ARGV do
    local count = tonumber(ARGV[at])
    replies[#replies + 1] = redis.call(unpack(ARGV, at + 1, at + count))
    at = at + 1 + count
end
return replies
