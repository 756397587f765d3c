#!lua
-- Keeps messages that have keys, and the keys: of those with the same key the first alone.
-- KEYS   1 meta   2 bodies   3 keyed   4 order of keys, then receivers of messages and marks
-- ARGV   1 epoch   2 id of the newest message   3 how long keys are remembered, in ns
--        4 how many keys are, then for each message its key, how many words describe it, and
--        these, as enter has them (one message alone if the call carries a note, for that is
--        about all of them)
-- Reply  how many keys were forgotten before their time, then for each message '' if it is kept, or
--        the id of the one that was kept before with its key
-- Cost   O(entries); besides, keys that are too old or too many go, some more than may come
-- Repeat finds the message's own id under its key, and then does what a repeat of keep does. Only
--        what repeated a message whose key went just then is told that it is the first.
--        Keys have no time to live in the store's sense: one that may throw away what has would
--        throw away all of them. The ids of messages are times, by the clock of who receives them.
local keyed, order = KEYS[3], KEYS[4]
local now, life, most = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])

-- The message that was kept with this key before, or ''. If there is none, this one is from now on.
local function claim(key, id)
    local first = redis.call('HGET', keyed, key)
    if first == id then
        return ''
    end
    if first and tonumber(first) + life > tonumber(id) then
        return first
    end
    redis.call('HSET', keyed, key, id)
    redis.call('RPUSH', order, id .. ':' .. key)
    return ''
end

local replies = { 0 }

-- The oldest key goes if its time is over, or there are too many; whether it went.
local function forget()
    local oldest = redis.call('LINDEX', order, 0)
    if not oldest then
        return false
    end
    local id, key = string.match(oldest, '^(%d+):(.*)$')
    local is_over = tonumber(id) + life <= now
    if not is_over and redis.call('HLEN', keyed) <= most then
        return false
    end
    redis.call('LPOP', order)
    -- Unless it is another message's by now, or was given up.
    if redis.call('HGET', keyed, key) == id then
        redis.call('HDEL', keyed, key)
        if not is_over then
            replies[1] = replies[1] + 1
        end
    end
    return true
end

local at = 5
while at <= last do
    local first = claim(ARGV[at], ARGV[at + 2])
    if first == '' then
        enter(at + 2)
        journal()
    end
    at = at + 2 + tonumber(ARGV[at + 1])
    replies[#replies + 1] = first
end
local chances = 2 * #replies + 100
while chances > 0 and forget() do
    chances = chances - 1
end
return replies
