#!lua
-- Appends a frame that stores no messages here to the log of this shard.
-- KEYS   1 meta   2 the log   3 the inbox
-- ARGV   1 its number, then the frame, as in log
-- Reply  the last call before this one
-- Cost   O(bytes of the frame)
-- Repeat does nothing.
journal()
return before
