#!lua
-- Stores messages with their publish keys; of messages with the same key, only the first. With those
-- that are requests, it stores what is kept of these.
-- KEYS   1 meta   2 bodies   3 keyed   4 order of keys   5 times of keys   6 requests, then receivers of
--        messages and marks
-- ARGV   1 its number   2 id of the newest message   3 time of the store's clock   4 how long keys are
--        remembered by this clock, in seconds   5 the most keys   6 'apart' if times of keys are
--        stored in another hash, because an older release may open the store again, else ''; then
--        for each message its key, the number of words that describe it, and of its arguments for
--        requests; these, as in keep; and those words, as in enter (only one message if the call has a
--        note, which covers the whole call)
-- Reply  the last call before this one, number of keys that were removed early, then for each
--        message '' if it is stored, or the id of the message that was stored before with its key
-- Cost   O(entries); also removes keys that are too old or too many, a few more than it can add
-- Repeat does nothing, and replies what it did before. Only a message whose key was removed in
--        between is taken for the first.
--        Keys have no TTL: a store that evicts volatile keys would evict all of them. Nor does their
--        age come from the ids of messages: a wall clock that jumps would make keys too old.
local keyed, order, times = KEYS[3], KEYS[4], KEYS[5]
local now, life, most = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local is_apart = ARGV[6] == 'apart'
if not is_repeat then
    advance(now)
end

-- Returns the message that has this key, the time when it was stored, and whether this time is
-- apart, if there is such a message.
local function owner(key)
    local found = redis.call('HGET', keyed, key)
    if found then
        local id, since = string.match(found, '^(%d+):?(%d*)$')
        if since ~= '' then
            return id, tonumber(since), false
        end
        -- A key without any time is of a release without a clock, and counts from its end on.
        since = redis.call('HGET', times, key) or redis.call('HGET', KEYS[1], 'former') or 0
        return id, tonumber(since), true
    end
end

-- Returns the message that was stored with this key before, or '' and enters this one.
local function claim(key, id)
    local first, since, has_time_apart = owner(key)
    if first == id then
        return ''
    end
    if first and since + life >= now then
        return first
    end
    if not is_repeat then
        redis.call('HSET', keyed, key, is_apart and id or id .. ':' .. ARGV[3])
        if is_apart then
            redis.call('HSET', times, key, ARGV[3])
        elseif has_time_apart then
            redis.call('HDEL', times, key)
        end
        redis.call('RPUSH', order, id .. ':' .. key)
    end
    return ''
end

local replies = { before, 0 }

-- Removes the oldest key if it is too old or there are too many; returns whether it did.
local function forget()
    local oldest = redis.call('LINDEX', order, 0)
    if not oldest then
        return false
    end
    local id, key = string.match(oldest, '^(%d+):(.*)$')
    local first, since, has_time_apart = owner(key)
    -- The key may belong to another message by now, or have been removed.
    local is_over = first ~= id or since + life < now
    if not is_over and redis.call('HLEN', keyed) <= most then
        return false
    end
    redis.call('LPOP', order)
    if first == id then
        redis.call('HDEL', keyed, key)
        if has_time_apart then
            redis.call('HDEL', times, key)
        end
        if not is_over then
            replies[2] = replies[2] + 1
        end
    end
    return true
end

local at = 7
while at <= last do
    local words, fields = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
    local message = at + 3 + fields
    local first = claim(ARGV[at], ARGV[message])
    if first == '' and not is_repeat then
        change(KEYS[6], at + 3, message - 1)
        enter(message)
        journal()
    end
    at = message + words
    replies[#replies + 1] = first
end
local chances = is_repeat and 0 or 2 * #replies + 100
while chances > 0 and forget() do
    chances = chances - 1
end
return replies
