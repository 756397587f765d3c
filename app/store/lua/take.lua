#!lua
-- Takes what other shards' logs have for this one: messages enter queues, letters the inbox, and the
-- places in these logs move on, in one step.
-- KEYS   1 meta   2 bodies, then receivers of messages and marks of sessions
-- ARGV   1 its number   2 id of the newest message of this shard   3 number of logs; for each the
--        number of its shard, the place so far ('' at the beginning), the place behind what is taken,
--        and the openings passed before ('' if they are the same); then the number of letters, and if
--        there are any, the position of the inbox in KEYS, and the name of each with the letter; then
--        hand-overs, as in hand_over; then the messages, as in enter
-- Reply  the last call before this one; with it 'PLACE', number of a shard, and its place: this is
--        another one than the call says, so nothing is taken. (An error could not say whether the
--        calls before this one are still there.)
-- Cost   O(logs + entries)
-- Repeat does nothing. A call with another place must be one that may be refused: it counts as not
--        carried out. So its repeat says the same, and the next call still shows what was before.

-- Takes back what fence has noted of this call.
local function leave_out()
    local number = string.match(ARGV[1], '^%S+ %w+%-(%d+)')
    local range = string.format('%d-%d ', string.match(before, '%d+$') + 1, number - 1)
    local skipped = (redis.call('HGET', KEYS[1], 'skipped') or '') .. ' '
    if string.sub(skipped, 1, #range) == range then
        redis.call('HSET', KEYS[1], 'skipped', string.sub(skipped, #range + 1, -2))
    end
    redis.call('HSET', KEYS[1], 'call', before)
end

local at = 4
for _ = 1, tonumber(ARGV[3]) do
    local found = redis.call('HGET', KEYS[1], 'place ' .. ARGV[at]) or ''
    if found ~= ARGV[at + 1] then
        leave_out()
        return { before, 'PLACE', ARGV[at], found }
    end
    at = at + 4
end
at = 4
for _ = 1, tonumber(ARGV[3]) do
    redis.call('HSET', KEYS[1], 'place ' .. ARGV[at], ARGV[at + 2])
    if ARGV[at + 3] ~= '' then
        redis.call('HSET', KEYS[1], 'passed ' .. ARGV[at], ARGV[at + 3])
    end
    at = at + 4
end
local letters, inbox = tonumber(ARGV[at]), KEYS[tonumber(ARGV[at + 1])]
at = at + 1
if letters > 0 then
    call('HSET', inbox, at + 1, at + 2 * letters)
    at = at + 1 + 2 * letters
end
at = hand_over(at)
while at <= last do
    at = enter(at)
end
journal()
return before
