#!lua
-- Stores messages: each once, with the sessions that will receive it; and changes what is kept of
-- requests, whose replies and ends some of them are, or which some of them carry.
-- KEYS   1 meta   2 bodies   3 requests, then receivers of messages and marks of sessions
-- ARGV   1 its number   2 id of the newest message   3 number of the arguments for requests, which
--        follow: the name and value of each field, '' to remove it; then hand-overs, as in hand_over;
--        then the messages, as in enter
-- Reply  the last call before this one
-- Cost   O(entries)
-- Repeat does nothing.
local at = 4 + tonumber(ARGV[3])
change(KEYS[3], 4, at - 1)
at = hand_over(at)
while at <= last do
    at = enter(at)
end
journal()
return before
