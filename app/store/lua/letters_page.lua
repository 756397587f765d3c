#!lua flags=no-writes
-- Reads dead letters in order, with their events only on request.
-- KEYS   1 index   2 dead
-- ARGV   1 where to begin and   2 where to end, as in ZRANGE BYLEX   3 most letters
--        4 'REV' for the newest first, else ''   5 'whole' with the events, else ''
-- Reply  id, record, id, record, ...; the record is false if the letter was removed. Large letters
--        are returned in smaller numbers, but at least one.
-- Cost   O(log(letters) + letters returned)
-- Repeat reads again.
local ids
if ARGV[4] == 'REV' then
    ids = redis.call('ZRANGE', KEYS[1], ARGV[1], ARGV[2], 'BYLEX', 'REV', 'LIMIT', 0, ARGV[3])
else
    ids = redis.call('ZRANGE', KEYS[1], ARGV[1], ARGV[2], 'BYLEX', 'LIMIT', 0, ARGV[3])
end
local found, read, most = {}, 0, 4 * 1024 * 1024
for _, id in ipairs(ids) do
    local record = redis.call('HGET', KEYS[2], id)
    read = read + (record and #record or 0)
    if record and ARGV[5] ~= 'whole' then
        local status = string.find(record, '\n', 1, true)
        local head = string.find(record, '\n', status + 1, true)
        record = string.sub(record, 1, head)
    end
    found[#found + 1] = id
    found[#found + 1] = record
    if read > most then
        break
    end
end
return found
