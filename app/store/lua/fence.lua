-- The first part of every script that writes. Only the process with the current epoch may write; a
-- store without an epoch has lost its state. That process numbers its calls, and the store notes
-- the number of the last one that it carried out: so it carries each out once, and one that follows
-- calls that the store no longer has shows that the store went back. It then does nothing.
-- KEYS[1] meta
-- ARGV[1] epoch, number of this call, number of a call that must have been carried out before, and
--         number of the oldest call without an answer. Calls in between may have been refused.
-- Reply   every script returns first `before`, the last call before this one; so the process knows
--         whether its calls are still there. A repeat gets its own number or a later one.
local epoch, number, needed, oldest = string.match(ARGV[1], '^(%S+) (%d+) (%d+) (%d+)$')
local meta = redis.call('HMGET', KEYS[1], 'epoch', 'last')
if meta[1] ~= epoch then
    return redis.error_reply('EPOCH ' .. (meta[1] or 'gone'))
end
local before = tonumber(meta[2])
number = tonumber(number)
local is_repeat = number <= before
if number ~= before + 1 then
    -- The store refuses a call before its script begins: such numbers are missing here. They are
    -- noted while the call may be repeated, because its answer was lost.
    local skipped = redis.call('HGET', KEYS[1], 'skipped') or ''
    if is_repeat then
        for first, last in string.gmatch(skipped, '(%d+)-(%d+)') do
            if tonumber(first) <= number and number <= tonumber(last) then
                return redis.error_reply('REFUSED the store refused this call before')
            end
        end
    elseif before < tonumber(needed) then
        return redis.error_reply('BACK ' .. meta[2])
    else
        local ranges = { string.format('%d-%d', before + 1, number - 1) }
        for first, last in string.gmatch(skipped, '(%d+)-(%d+)') do
            if tonumber(last) >= tonumber(oldest) then
                ranges[#ranges + 1] = first .. '-' .. last
            end
        end
        redis.call('HSET', KEYS[1], 'skipped', table.concat(ranges, ' '))
    end
end
if not is_repeat then
    redis.call('HSET', KEYS[1], 'last', number)
end
