#!lua flags=allow-oom
-- Adds what an operator has changed or tried to change; drops the oldest beyond about so many.
-- KEYS   1 meta   2 audit
-- ARGV   1 its number   2 most entries, then names and values of fields
-- Reply  the last call before this one
-- Cost   O(fields)
-- Repeat does nothing.
redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[2], '*', unpack(ARGV, 3))
return before
