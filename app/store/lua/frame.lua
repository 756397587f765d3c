#!lua flags=allow-oom
-- Writes a numbered frame of the journal and removes the notes that it includes. By the number,
-- readers recognise lost or trimmed frames; by the epoch, an emptied store, where numbers restart.
-- Each frame carries the digest of the one before it, so that readers recognise altered frames.
-- KEYS   1 meta   2 the node's stream   3 its notes
-- ARGV   1 epoch   2 number of the call   3 the frame, then the numbers of its notes
-- Reply  OK
-- Cost   O(bytes of the frame + notes)
-- Repeat writes nothing: calls come in the order of their numbers, and the latest is known. It
--        removes notes again that came back because their calls were repeated.
local meta, stream, notes = KEYS[1], KEYS[2], KEYS[3]
local epoch, number = string.match(redis.call('HGET', notes, 'call') or '', '^(.*):(%d+)$')
if epoch ~= ARGV[1] or tonumber(number) < tonumber(ARGV[2]) then
    local seq = redis.call('HINCRBY', meta, stream, 1)
    local before = redis.call('HGET', meta, 'digest ' .. stream) or ''
    local signed = table.concat({ before, ARGV[1], seq, ARGV[3] }, '\n')
    redis.call('HSET', meta, 'digest ' .. stream, string.sub(redis.sha1hex(signed), 1, 20))
    if seq == 1 then
        redis.call('HSET', meta, 'trimmed ' .. stream, 0)
    end
    redis.call('HSET', notes, 'call', ARGV[1] .. ':' .. ARGV[2])
    redis.call('XADD', stream, '*', 'epoch', ARGV[1], 'seq', seq, 'before', before,
        'frame', ARGV[3])
end
call('HDEL', notes, 4, #ARGV)
return redis.status_reply('OK')
