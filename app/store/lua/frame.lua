#!lua flags=allow-oom
-- Writes a numbered frame of the journal and removes the notes that it includes. By the number,
-- readers recognise lost or trimmed frames; by the epoch, an emptied store, where numbers restart.
-- Each frame carries the digest of the one before it, so that readers recognise altered frames.
-- KEYS   1 meta   2 the node's stream   3 its notes
-- ARGV   1 its number   2 epoch in which the frame was made   3 its number in the stream if the store
--        had it before and lost it, or 0 for the next   4 the frame, then the numbers of its notes
-- Reply  the last call before this one, the frame's number in the stream
-- Cost   O(bytes of the frame + notes)
-- Repeat does nothing, and replies without a number.
local meta, stream, notes, epoch = KEYS[1], KEYS[2], KEYS[3], ARGV[2]
local seq = tonumber(ARGV[3])
if seq == 0 then
    seq = redis.call('HINCRBY', meta, stream, 1)
else
    redis.call('HSET', meta, stream, seq)
end
local digest = redis.call('HGET', meta, 'digest ' .. stream) or ''
local signed = table.concat({ digest, epoch, seq, ARGV[4] }, '\n')
redis.call('HSET', meta, 'digest ' .. stream, string.sub(redis.sha1hex(signed), 1, 20))
if seq == 1 then
    redis.call('HSET', meta, 'trimmed ' .. stream, 0)
end
redis.call('XADD', stream, '*', 'epoch', epoch, 'seq', seq, 'before', digest, 'frame', ARGV[4])
call('HDEL', notes, 5, #ARGV)
return { before, seq }
