-- The first part of every script that writes. Only the process with the current epoch may write; a
-- store without an epoch has lost its state. That process numbers its calls, and the store notes
-- the last one that it carried out: so it carries each out once, and a call that needs one which
-- the store no longer has shows that the store went back. It then does nothing.
-- KEYS[1] meta
-- ARGV[1] call before this one, this call, each as a name: random text of the process and a number
--         from 1, "07f03e2d-000000000001"; number of a call that must have been carried out before;
--         number of the oldest call without an answer
-- Reply   every script returns first `before`, the last call carried out before this one: so the
--         process knows whether its calls are still there. A repeat gets its own name or a later
--         one, and the numbers that are missing before it.
local found = redis.call('HMGET', KEYS[1], 'call', 'newest')
local before, newest = found[1] or '', found[2] or ''
local is_repeat = false
if before ~= string.sub(ARGV[1], 1, 21) then
    local process, number, needed, oldest =
        string.match(ARGV[1], '^%S+ (%w+%-)(%d+) (%d+) (%d+)$')
    if string.sub(before, 1, #process) ~= process then
        return redis.error_reply('EPOCH ' .. (redis.call('HGET', KEYS[1], 'epoch') or 'gone'))
    end
    local last = tonumber(string.sub(before, #process + 1))
    number = tonumber(number)
    is_repeat = number <= last
    -- The store refuses a call before its script begins: such numbers are missing here. They are
    -- noted while the call may be repeated, because its answer was lost.
    local skipped = redis.call('HGET', KEYS[1], 'skipped') or ''
    if is_repeat then
        for first, to in string.gmatch(skipped, '(%d+)-(%d+)') do
            if tonumber(first) <= number and number <= tonumber(to) then
                return redis.error_reply('REFUSED the store refused this call before')
            end
        end
        before = before .. ' ' .. skipped
    elseif last < tonumber(needed) then
        return redis.error_reply('BACK ' .. before)
    else
        local ranges = { string.format('%d-%d', last + 1, number - 1) }
        for first, to in string.gmatch(skipped, '(%d+)-(%d+)') do
            if tonumber(to) >= tonumber(oldest) then
                ranges[#ranges + 1] = first .. '-' .. to
            end
        end
        redis.call('HSET', KEYS[1], 'skipped', table.concat(ranges, ' '))
    end
end
