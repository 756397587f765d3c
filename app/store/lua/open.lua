#!lua flags=allow-oom
-- Makes the caller the only writer. A store keeps its layout.
-- KEYS   1 meta   2 handed, then what earlier releases do not know, and left as it was
-- ARGV   1 version of the layout   2 the oldest version that this release reads, too
--        3 a random seed, for an empty store   4 name of the node   5 eight random letters or
--        digits, so that no two epochs are equal, even if the store forgot one   6 the epochs that
--        the caller may replace, '' for all   7 the deployment whose store this must be, or ''
--        8 a name for the deployment of an empty store   9 a random key, for a store without one
--        10 the lock that the caller holds for as long as it lives, '' if it keeps all others away
--        from the store   11 the epoch and lease that the caller saw unchanged for so long that
--        their holder must be silent   12 a number below the epoch's   13 the generation of the keys
--        14 the map of shards   15 the table of homes, both '' unless this is the first of several
--        16 an id by the caller's wall clock, '' if it gives none   17 '1' if the caller may also
--        replace any epoch of a process with its own lock, as that one has ended   18 the host of the
--        caller, '' if the deployment has no list of hosts   19 the epoch whose holder offers the store
--        to this host, '' if the caller does not go by an offer
-- Reply  epoch, id of the newest message or dead letter, or one above all that were given ('' if
--        there was none), time of the store's clock, the version that was found ('' in an empty store), the epochs before it, name and
--        key of the deployment; or the error DEPLOYMENT and a name: the store is that one's; or
--        the error GENERATION and a number: the store has these keys; or the error OFFER: there is no
--        such offer any more
-- Cost   O(1)
-- Repeat returns the same epoch, until another process opens the store.
local meta, version, oldest, seed, node = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local wanted, name, key = ARGV[7], ARGV[8], ARGV[9]
-- How many epochs before its own a process recognises in a store that went back, such as one that
-- was restored from a backup: as many as a server has in some years.
local MOST = 1000

local function later(id, ns)
    local second, rest = tonumber(string.sub(id, 1, -10)), tonumber(string.sub(id, -9)) + ns
    return string.format('%010d%09d', second + math.floor(rest / 1e9), rest % 1e9)
end

local found = redis.call('HGET', meta, 'version')
local number = tonumber(found or version) or 0
if number < tonumber(oldest) or number > tonumber(version) then
    return redis.error_reply('VERSION ' .. found)
end
local before = redis.call('HGET', meta, 'epoch')
local epochs = redis.call('HGET', meta, 'epochs') or ''
local is_repeat = before and string.match(before, '%.(%w+)$') == ARGV[5]
if not is_repeat then
    local is_ours = string.find(' ' .. ARGV[6] .. ' ', ' ' .. (before or '') .. ' ', 1, true)
    local holder = redis.call('HGET', meta, 'holder') or ''
    is_ours = is_ours or (ARGV[17] == '1' and holder == ARGV[10])
    if ARGV[6] ~= '' and before and not is_ours then
        return redis.error_reply('EPOCH ' .. before)
    end
    local lease = redis.call('HGET', meta, 'lease')
    local lock, unraised, offered = ARGV[10], ARGV[11], ARGV[19]
    if offered ~= '' then
        if before ~= offered or redis.call('HGET', meta, 'offer') ~= ARGV[18] then
            return redis.error_reply('OFFER ' .. (before or 'gone'))
        end
    elseif lease and ARGV[6] == '' and lock ~= '' and lock ~= holder then
        local held = before .. ' ' .. lease
        if held ~= unraised then
            local host, node = unpack(redis.call('HMGET', meta, 'host', 'node'))
            return redis.error_reply(
                'HELD ' .. held .. ' ' .. (host or '-') .. ' ' .. (node or ''))
        end
    end
    -- In earlier releases, ids of messages began with the name of the node: they stay the same.
    local deployment = redis.call('HGET', meta, 'deployment') or redis.call('HGET', meta, 'node')
    if deployment and wanted ~= '' and wanted ~= deployment then
        return redis.error_reply('DEPLOYMENT ' .. deployment)
    end
    -- Earlier releases had no generations.
    local generation = redis.call('HGET', meta, 'generation') or (found and '0')
    if generation and generation ~= ARGV[13] then
        return redis.error_reply('GENERATION ' .. generation)
    end
    if before and not string.match(before, '%.%w+$') then
        -- An earlier release had the store.
        redis.call('UNLINK', unpack(KEYS, 3))
        redis.call('HSET', meta, 'former', redis.call('HGET', meta, 'clock') or 0)
    end
    redis.call('HSETNX', meta, 'seed', seed)
    redis.call('HSETNX', meta, 'generation', ARGV[13])
    redis.call('HSETNX', meta, 'deployment', deployment or name)
    redis.call('HSETNX', meta, 'key', key)
    local fence = math.max(tonumber(redis.call('HGET', meta, 'fence') or 0), tonumber(ARGV[12])) + 1
    local epoch = redis.call('HGET', meta, 'seed') .. '-' .. fence .. '.' .. ARGV[5]
    epochs = string.match(epochs .. ' ' .. (before or ''), '^%s*(.*)$')
    while select(2, string.gsub(epochs, '%S+', '')) > MOST do
        epochs = string.match(epochs, '^%S+%s+(.*)$')
    end
    redis.call('HSETNX', meta, 'version', version)
    if ARGV[14] ~= '' then
        redis.call('HSETNX', meta, 'shards', ARGV[14])
        redis.call('HSETNX', meta, 'homes', ARGV[15])
    end
    redis.call('HSET', meta, 'fence', fence, 'node', node, 'epoch', epoch,
        'epochs', epochs, 'call', ARGV[5] .. '-' .. string.format('%012d', 0))
    redis.call('HDEL', meta, 'skipped', 'lease', 'holder', 'host', 'offer')
    if ARGV[18] ~= '' then
        redis.call('HSET', meta, 'host', ARGV[18])
    end
    if lock ~= '' then
        redis.call('HSET', meta, 'lease', 0, 'holder', lock)
    end
    before = epoch
    -- A long value turns the hash into a table at once; a listpack would be searched for each
    -- session.
    redis.call('HSET', KEYS[2], '', string.rep(' ', 65))
end
local newest = redis.call('HGET', meta, 'newest') or ''
local stamped = redis.call('HGET', meta, 'stamped') or ''
local above = stamped > newest and stamped or newest
if ARGV[16] ~= '' and not is_repeat then
    -- The next process must not give the ids that the caller gives before it has noted any: by its wall
    -- clock within a second, or 100,000 of a microsecond each if that clock is behind.
    local by_clock = later(ARGV[16], 1e9)
    local by_number = above ~= '' and later(above, 1e8) or ''
    redis.call('HSET', meta, 'stamped', by_clock > by_number and by_clock or by_number)
end
return {
    before,
    above,
    redis.call('HGET', meta, 'clock') or '0',
    found or '',
    epochs,
    redis.call('HGET', meta, 'deployment'),
    redis.call('HGET', meta, 'key'),
}
