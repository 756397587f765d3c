-- Lets a script write its call's frame into the journal, in the same step as what it changes: once,
-- however often the call is repeated, and with a number of its own. Readers tell by the number what
-- was lost or cut off, and by the epoch a store that was emptied, where numbers begin anew.
-- KEYS   1 meta; behind all others the node's stream, and its calls, whose frames are there
-- ARGV   behind all others number of the call, up to which number calls have been answered (they
--        are not repeated any more), how many frames there may be, the frame
local recent, stream = table.remove(KEYS), table.remove(KEYS)
local frame, most = table.remove(ARGV), table.remove(ARGV)
local answered, number = table.remove(ARGV), table.remove(ARGV)

local function journal()
    local call = ARGV[1] .. ':' .. number
    if redis.call('ZSCORE', recent, call) then
        return
    end
    local seq = redis.call('HINCRBY', KEYS[1], stream, 1)
    redis.call('XADD', stream, 'MAXLEN', '~', most, '*',
        'epoch', ARGV[1], 'seq', seq, 'frame', frame)
    redis.call('ZREMRANGEBYSCORE', recent, '-inf', answered)
    redis.call('ZADD', recent, number, call)
end
