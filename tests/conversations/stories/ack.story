-- The ack extension: every connect reply is a numbered batch, and the server redelivers what the client
-- did not acknowledge. It works alike over every transport, because messages come with connects only.

transports: long-polling, websocket, callback-polling

# A handshake agrees on the ack extension
alice -> /meta/handshake {"ext": {"ack": true}}
alice <- /meta/handshake ok {"clientId": new $alice, "ext": {"ack": true}, ...}
alice -> /meta/connect {"ext": {"ack": 0}}
alice <- {"channel": "/meta/connect", "id": "2", "successful": true, "ext": {"ack": 1}}

# A client that enables ack with a string gets a string back
alice -> /meta/handshake {"ext": {"ack": "true"}}
alice <- /meta/handshake ok {"clientId": new $alice, "ext": {"ack": "true"}, ...}
alice -> /meta/connect {"ext": {"ack": 0}}
alice <- /meta/connect ok {"ext": {"ack": 1}}

# Only true, as a boolean or a string, enables the ack extension
alice -> /meta/handshake {"ext": {"ack": false}}
alice <- /meta/handshake ok {"clientId": new $alice, "ext": absent, ...}
alice -> /meta/connect {"ext": {"ack": 0}}
alice <- /meta/connect error "400:user.illegalArgument,ack without ext.ack in the handshake:ext_invalid"
bob -> /meta/handshake {"ext": {"ack": 1}}
bob <- /meta/handshake ok {"clientId": new $bob, "ext": absent, ...}
bob -> /meta/connect {"ext": {"ack": 0}}
bob <- /meta/connect error "400:user.illegalArgument,ack without ext.ack in the handshake:ext_invalid"
carol -> /meta/handshake {"ext": {"ack": {"enabled": true}}}
carol <- /meta/handshake ok {"clientId": new $carol, "ext": absent, ...}
dave -> /meta/handshake {"ext": {"ack": "yes", "delivery": false}}
dave <- /meta/handshake ok {"clientId": new $dave, "ext": absent, ...}
erin -> /meta/handshake {"ext": {"ack": null}}
erin <- /meta/handshake ok {"clientId": new $erin, "ext": absent, ...}

# The ack extension can be disabled
! ack = false
alice -> /meta/handshake {"ext": {"ack": true}}
alice <- /meta/handshake ok {"clientId": new $alice, "ext": absent, ...}
alice -> /meta/connect {"ext": {"ack": 0}}
alice <- /meta/connect ok

# Every connect reply is a new batch, even an empty one
! timeout = 500
alice handshakes with ack
alice connects with ack
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /meta/connect ok {"ext": {"ack": 2}}
alice -> /meta/connect {"ext": {"ack": 2}}
alice <- /meta/connect ok {"ext": {"ack": 3}}

# A message releases the held connect
alice handshakes with ack
alice subscribes to /ack/released
alice connects with ack
alice ~> /meta/connect {"ext": {"ack": 1}}
bob handshakes
bob publishes "hello" to /ack/released
alice <~ /ack/released {"data": "hello"}
         /meta/connect ok {"ext": {"ack": 2}}
alice ~> /meta/connect {"ext": {"ack": 2}}
alice is held

# With ack, even a client's own messages come with connects only
alice handshakes with ack
alice subscribes to /ack/own
alice connects with ack
alice ~> /meta/connect {"ext": {"ack": 1}}
alice -> /ack/own {"data": "mine"}
         /meta/subscribe {"subscription": "/ack/other"}
alice <- /ack/own ok
         /meta/subscribe ok
alice <~ /ack/own {"data": "mine"}
         /meta/connect ok {"ext": {"ack": 2}}

# Messages that were published before the first connect are the batch of its reply
alice handshakes with ack
alice subscribes to /ack/before
bob handshakes
bob publishes 1 to /ack/before
alice hears nothing
alice -> /meta/connect {"ext": {"ack": 0}}
alice <- /ack/before {"data": 1}
         /meta/connect ok {"ext": {"ack": 1}}

# An unacknowledged batch is redelivered at once under a new number
pins: 29
alice handshakes with ack
alice subscribes to /ack/again
alice connects with ack
alice ~> /meta/connect {"ext": {"ack": 1}}
bob handshakes
bob publishes "hello" to /ack/again
alice <~ /ack/again {"data": "hello"}
         /meta/connect ok {"ext": {"ack": 2}}
-- The client never saw that reply: it asks as before, and not for an immediate answer.
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /ack/again {"data": "hello"}
         /meta/connect ok {"ext": {"ack": 3}}
alice ~> /meta/connect {"ext": {"ack": 3}}
alice is held

# Redelivered messages come first and in order, all at once
alice handshakes with ack
alice subscribes to /ack/order
alice connects with ack
bob handshakes
bob -> 20 times /ack/order {"data": "old"}
bob <- 20 times /ack/order ok
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- 20 times /ack/order {"data": "old"}
         /meta/connect ok {"ext": {"ack": 2}}
bob publishes "new" to /ack/order
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- 20 times /ack/order {"data": "old"}
         /ack/order {"data": "new"}
         /meta/connect ok {"ext": {"ack": 3}}
alice ~> /meta/connect {"ext": {"ack": 3}}
alice is held

# Receivers that give verdicts get redelivered messages in growing batches
alice -> /meta/handshake {"ext": {"ack": true, "delivery": true}}
alice <- /meta/handshake ok {"clientId": new $alice, ...}
alice subscribes to /ack/verdicts
alice connects with ack
bob handshakes
bob -> /ack/verdicts {"data": 1}
       /ack/verdicts {"data": 2}
bob <- /ack/verdicts ok
       /ack/verdicts ok
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /ack/verdicts {"data": 1, ...}
         /ack/verdicts {"data": 2, ...}
         /meta/connect ok {"ext": {"ack": 2}}
bob publishes 3 to /ack/verdicts
-- The first redelivery has one message; the batch window then grows with each settled one.
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /ack/verdicts {"data": 1, ...}
         /meta/connect ok {"ext": {"ack": 3}}
bob publishes 4 to /ack/verdicts
alice -> /meta/connect {"ext": {"ack": 3}}
alice <- /ack/verdicts {"data": 2, ...}
         /ack/verdicts {"data": 3, ...}
         /meta/connect ok {"ext": {"ack": 4}}
alice -> /meta/connect {"ext": {"ack": 4}}
alice <- /ack/verdicts {"data": 4, ...}
         /meta/connect ok {"ext": {"ack": 5}}
alice ~> /meta/connect {"ext": {"ack": 5}}
alice is held
alice leaves while waiting

# A message with its last attempt comes alone
! channels = {"/ack/deadly": {"max_attempts": 3}}
alice handshakes with ack
alice subscribes to /ack/deadly
alice connects with ack
bob handshakes
bob -> /ack/deadly {"data": "poison"}
       /ack/deadly {"data": 2}
bob <- 2 times /ack/deadly ok
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /ack/deadly {"data": "poison"}
         /ack/deadly {"data": 2}
         /meta/connect ok {"ext": {"ack": 2}}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /ack/deadly {"data": "poison"}
         /ack/deadly {"data": 2}
         /meta/connect ok {"ext": {"ack": 3}}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /ack/deadly {"data": "poison"}
         /meta/connect ok {"ext": {"ack": 4}}
-- It has become a dead letter. What was beside it before has an attempt of its own.
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /ack/deadly {"data": 2}
         /meta/connect ok {"ext": {"ack": 5}}
alice ~> /meta/connect {"ext": {"ack": 5}}
alice is held

# An ack of a batch that seemed lost settles all its messages
alice handshakes with ack
alice subscribes to /ack/late
alice connects with ack
bob handshakes
bob -> /ack/late {"data": 1}
       /ack/late {"data": 2}
bob <- /ack/late ok
       /ack/late ok
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /ack/late {"data": 1}
         /ack/late {"data": 2}
         /meta/connect ok {"ext": {"ack": 2}}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /ack/late {"data": 1}
         /ack/late {"data": 2}
         /meta/connect ok {"ext": {"ack": 3}}
alice ~> /meta/connect {"ext": {"ack": 2}}
alice is held

# A client that asks not to be held after a failure gets everything at once
pins: 60
alice handshakes with ack
alice subscribes to /ack/reload
alice connects with ack
alice ~> /meta/connect {"ext": {"ack": 1}}
bob handshakes
bob publishes 1 to /ack/reload
alice <~ /ack/reload {"data": 1}
         /meta/connect ok {"ext": {"ack": 2}}
-- The page was reloaded before it could acknowledge the message.
alice drops
bob publishes 2 to /ack/reload
alice -> /meta/connect {"ext": {"ack": 1}, "advice": {"timeout": 0}}
alice <- /ack/reload {"data": 1}
         /ack/reload {"data": 2}
         /meta/connect ok {"ext": {"ack": 3}, "advice": {"reconnect": "retry", "interval": 0, "timeout": 30000}}
alice -> /meta/connect {"ext": {"ack": 3}, "advice": {"timeout": 0}}
alice <- /meta/connect ok {"ext": {"ack": 4}, "advice": {"reconnect": "retry", "interval": 0, "timeout": 30000}}

# Redelivery slows down for a receiver that never acknowledges
alice handshakes with ack
alice subscribes to /ack/spin
alice connects with ack
bob handshakes
bob publishes 1 to /ack/spin
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /ack/spin {"data": 1}
         /meta/connect ok {"ext": {"ack": 2}}
-- Three redeliveries come at once,
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /ack/spin {"data": 1}
         /meta/connect ok {"ext": {"ack": 3}}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /ack/spin {"data": 1}
         /meta/connect ok {"ext": {"ack": 4}}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /ack/spin {"data": 1}
         /meta/connect ok {"ext": {"ack": 5}}
-- the next three after 100, 200 and 400 ms,
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /ack/spin {"data": 1}
         /meta/connect ok {"ext": {"ack": 6}}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /ack/spin {"data": 1}
         /meta/connect ok {"ext": {"ack": 7}}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /ack/spin {"data": 1}
         /meta/connect ok {"ext": {"ack": 8}}
-- the next after 800 ms,
alice ~> /meta/connect {"ext": {"ack": 1}}
alice is held for 100 ms
alice <~ /ack/spin {"data": 1}
         /meta/connect ok {"ext": {"ack": 9}}
-- but at once if the client asks for that.
alice -> /meta/connect {"ext": {"ack": 1}, "advice": {"timeout": 0}}
alice <- /ack/spin {"data": 1}
         /meta/connect ok {"ext": {"ack": 10}, "advice": <any>}
-- An ack ends the pauses.
alice ~> /meta/connect {"ext": {"ack": 10}}
bob publishes 2 to /ack/spin
alice <~ /ack/spin {"data": 2}
         /meta/connect ok {"ext": {"ack": 11}}
alice -> /meta/connect {"ext": {"ack": 10}}
alice <- /ack/spin {"data": 2}
         /meta/connect ok {"ext": {"ack": 12}}

# A new message does not shorten the pause before a redelivery
alice handshakes with ack
alice subscribes to /ack/pause
alice connects with ack
bob handshakes
bob publishes 1 to /ack/pause
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /ack/pause {"data": 1}
         /meta/connect ok {"ext": {"ack": 2}}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /ack/pause {"data": 1}
         /meta/connect ok {"ext": {"ack": 3}}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /ack/pause {"data": 1}
         /meta/connect ok {"ext": {"ack": 4}}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /ack/pause {"data": 1}
         /meta/connect ok {"ext": {"ack": 5}}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /ack/pause {"data": 1}
         /meta/connect ok {"ext": {"ack": 6}}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /ack/pause {"data": 1}
         /meta/connect ok {"ext": {"ack": 7}}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /ack/pause {"data": 1}
         /meta/connect ok {"ext": {"ack": 8}}
-- After seven hand-overs, the eighth waits for 800 ms.
alice ~> /meta/connect {"ext": {"ack": 1}}
bob publishes 2 to /ack/pause
alice is held for 400 ms
alice <~ /ack/pause {"data": 1}
         /ack/pause {"data": 2}
         /meta/connect ok {"ext": {"ack": 9}}

# A late ack of an older batch changes nothing
alice handshakes with ack
alice subscribes to /ack/stale
alice connects with ack
bob handshakes
bob publishes 1 to /ack/stale
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /ack/stale {"data": 1}
         /meta/connect ok {"ext": {"ack": 2}}
alice -> /meta/connect {"ext": {"ack": 2}, "advice": {"timeout": 0}}
alice <- /meta/connect ok {"ext": {"ack": 3}, "advice": <any>}
alice -> /meta/connect {"ext": {"ack": 1}, "advice": {"timeout": 0}}
alice <- /meta/connect ok {"ext": {"ack": 4}, "advice": <any>}

# An ack of a batch that was never sent settles nothing
alice handshakes with ack
alice subscribes to /ack/range
alice connects with ack
bob handshakes
bob publishes 1 to /ack/range
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /ack/range {"data": 1}
         /meta/connect ok {"ext": {"ack": 2}}
alice -> /meta/connect {"ext": {"ack": 3}, "advice": {"timeout": 0}}
alice <- /ack/range {"data": 1}
         /meta/connect ok {"ext": {"ack": 3}, "advice": <any>}
alice -> /meta/connect {"ext": {"ack": 9999999999}, "advice": {"timeout": 0}}
alice <- /ack/range {"data": 1}
         /meta/connect ok {"ext": {"ack": 4}, "advice": <any>}
alice -> /meta/connect {"ext": {"ack": -1}, "advice": {"timeout": 0}}
alice <- /ack/range {"data": 1}
         /meta/connect ok {"ext": {"ack": 5}, "advice": <any>}
alice -> /meta/connect {"ext": {"ack": 5}, "advice": {"timeout": 0}}
alice <- /meta/connect ok {"ext": {"ack": 6}, "advice": <any>}

# A connect whose ack is not a whole number is refused and settles nothing
alice handshakes with ack
alice subscribes to /ack/odd
alice connects with ack
bob handshakes
bob publishes 1 to /ack/odd
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /ack/odd {"data": 1}
         /meta/connect ok {"ext": {"ack": 2}}
alice -> /meta/connect {"ext": {"ack": "2"}, "advice": {"timeout": 0}}
alice <- /meta/connect error "400:user.illegalArgument,ack:ext_invalid"
alice -> /meta/connect {"ext": {"ack": 2.5}, "advice": {"timeout": 0}}
alice <- /meta/connect error "400:user.illegalArgument,ack:ext_invalid"
alice -> /meta/connect {"ext": {"ack": true}, "advice": {"timeout": 0}}
alice <- /meta/connect error "400:user.illegalArgument,ack:ext_invalid"
alice -> /meta/connect {"ext": {"ack": null}, "advice": {"timeout": 0}}
alice <- /meta/connect error "400:user.illegalArgument,ack:ext_invalid"
alice -> /meta/connect {"ext": {"ack": 1}, "advice": {"timeout": 0}}
alice <- /ack/odd {"data": 1}
         /meta/connect ok {"ext": {"ack": 3}, "advice": <any>}
alice -> /meta/connect {"ext": {"ack": 3.0}, "advice": {"timeout": 0}}
alice <- /meta/connect ok {"ext": {"ack": 4}, "advice": <any>}

# A connect without an ack settles nothing, but its reply is numbered
alice handshakes with ack
alice subscribes to /ack/none
alice connects with ack
bob handshakes
bob publishes 1 to /ack/none
alice -> /meta/connect
alice <- /ack/none {"data": 1}
         /meta/connect ok {"ext": {"ack": 2}}
alice -> /meta/connect {"advice": {"timeout": 0}}
alice <- /ack/none {"data": 1}
         /meta/connect ok {"ext": {"ack": 3}, "advice": <any>}

# An ack in a publish or a subscribe is ignored
alice handshakes with ack
alice subscribes to /ack/only
alice connects with ack
bob handshakes
bob publishes 1 to /ack/only
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /ack/only {"data": 1}
         /meta/connect ok {"ext": {"ack": 2}}
alice -> /ack/elsewhere {"data": 0, "ext": {"ack": 2}}
         /meta/subscribe {"subscription": "/ack/elsewhere", "ext": {"ack": 2}}
alice <- /ack/elsewhere ok
         /meta/subscribe ok
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /ack/only {"data": 1}
         /meta/connect ok {"ext": {"ack": 3}}

# A first connect may carry ack -1, as old clients send it
alice handshakes with ack
alice subscribes to /ack/old
alice -> /meta/connect {"ext": {"ack": -1}}
alice <- /meta/connect ok {"ext": {"ack": 1}}
alice ~> /meta/connect {"ext": {"ack": 1}}
alice is held

# A message is delivered once although a connect failed on the client
pins: 31
transports: long-polling, callback-polling
alice handshakes with ack
alice subscribes to /ack/failed
alice connects with ack
alice ~> /meta/connect {"ext": {"ack": 1}}
-- maxNetworkDelay is over, the client gives up.
alice drops
bob handshakes
bob publishes "hello" to /ack/failed
alice -> /meta/connect {"ext": {"ack": 1}, "advice": {"timeout": 0}}
alice <- /ack/failed {"data": "hello"}
         /meta/connect ok {"ext": {"ack": <integer>}, "advice": <any>}
alice ~> /meta/connect {"ext": {"ack": 2}}
alice is held

# A reply that another one overtook does not settle newer messages
pins: 32
transports: long-polling, callback-polling
alice handshakes with ack
alice subscribes to /ack/overtaken
alice connects with ack
alice ~> /meta/connect {"id": "slow", "ext": {"ack": 1}}
bob handshakes
alice stops reading
bob publishes 1 to /ack/overtaken
-- The reply is under way, but the client asks again over another connection.
bob publishes 2 to /ack/overtaken
alice ~> /meta/connect {"id": "fast", "ext": {"ack": 1}}
alice reads again
alice <~ /ack/overtaken {"data": 1}
         /meta/connect ok {"id": "slow", "ext": {"ack": 2}}
alice <~ /ack/overtaken {"data": 1}
         /ack/overtaken {"data": 2}
         /meta/connect ok {"id": "fast", "ext": {"ack": 3}}
bob publishes 3 to /ack/overtaken
-- The client believes the reply that came in time.
alice -> /meta/connect {"ext": {"ack": 2}}
alice <- /ack/overtaken {"data": 2}
         /ack/overtaken {"data": 3}
         /meta/connect ok {"ext": {"ack": 4}}

# A held connect that a newer one supersedes takes no messages with it
transports: long-polling, callback-polling
alice handshakes with ack
alice subscribes to /ack/replaced
alice connects with ack
alice ~> /meta/connect {"id": "older", "ext": {"ack": 1}}
alice ~> /meta/connect {"id": "newer", "ext": {"ack": 1}}
alice <~ 409 /meta/connect error "409::connect_superseded" {"id": "older"}
bob handshakes
bob publishes 1 to /ack/replaced
alice <~ /ack/replaced {"data": 1}
         /meta/connect ok {"id": "newer", "ext": {"ack": <integer>}}

# A broken socket loses no messages
pins: 54
transports: websocket
alice handshakes with ack
alice subscribes to /ack/socket
alice connects with ack
alice ~> /meta/connect {"ext": {"ack": 1}}
bob handshakes
bob publishes 1 to /ack/socket
alice <~ /ack/socket {"data": 1}
         /meta/connect ok {"ext": {"ack": 2}}
alice drops
bob publishes 2 to /ack/socket
alice -> /meta/connect {"ext": {"ack": 1}, "advice": {"timeout": 0}}
alice <- /ack/socket {"data": 1}
         /ack/socket {"data": 2}
         /meta/connect ok {"ext": {"ack": 3}, "advice": <any>}

# A session with ack continues over another transport
transports: long-polling
alice handshakes with ack
alice subscribes to /ack/transport
alice connects with ack
bob handshakes
bob publishes 1 to /ack/transport
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /ack/transport {"data": 1}
         /meta/connect ok {"ext": {"ack": 2}}
alice speaks websocket
alice -> /meta/connect {"ext": {"ack": 1}, "advice": {"timeout": 0}}
alice <- /ack/transport {"data": 1}
         /meta/connect ok {"ext": {"ack": 3}, "advice": <any>}
alice ~> /meta/connect {"ext": {"ack": 3}}
bob publishes 2 to /ack/transport
alice <~ /ack/transport {"data": 2}
         /meta/connect ok {"ext": {"ack": 4}}

# Unacknowledged lazy messages do not release a held connect
pins: 30
! channels = {"/ack/lazy": {"lazy": true, "lazy_timeout": 3000}}
alice handshakes with ack
alice -> /meta/subscribe {"subscription": ["/ack/lazy", "/ack/prompt"]}
alice <- /meta/subscribe ok
alice connects with ack
bob handshakes
bob -> /ack/lazy {"data": "lazy"}
       /ack/prompt {"data": "prompt"}
bob <- /ack/lazy ok
       /ack/prompt ok
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /ack/lazy {"data": "lazy"}
         /ack/prompt {"data": "prompt"}
         /meta/connect ok {"ext": {"ack": 2}}
alice ~> /meta/connect {"ext": {"ack": 2}}
bob publishes "lazy again" to /ack/lazy
alice is held for 50 ms
alice -> /meta/connect {"ext": {"ack": 2}, "id": "now", "advice": {"timeout": 0}}
alice <- /ack/lazy {"data": "lazy again"}
         /meta/connect ok {"id": "now", "ext": {"ack": 3}, "advice": <any>}
on long-polling, callback-polling:
    alice <~ 409 /meta/connect error "409::connect_superseded"
alice ~> /meta/connect {"ext": {"ack": 2}, "id": "last"}
alice is held for 50 ms
bob publishes "prompt again" to /ack/prompt
alice <~ /ack/lazy {"data": "lazy again"}
         /ack/prompt {"data": "prompt again"}
         /meta/connect ok {"id": "last", "ext": {"ack": 4}}

# Unacked messages count towards the limit of the queue
! max_queue = 3
alice handshakes with ack
alice subscribes to /ack/bounded
alice connects with ack
bob handshakes
bob publishes 1 to /ack/bounded
bob publishes 2 to /ack/bounded
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /ack/bounded {"data": 1}
         /ack/bounded {"data": 2}
         /meta/connect ok {"ext": {"ack": 2}}
bob publishes 3 to /ack/bounded
bob publishes "one too many" to /ack/bounded
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /ack/bounded {"data": 1}
         /ack/bounded {"data": 2}
         /ack/bounded {"data": 3}
         /meta/connect ok {"ext": {"ack": 3}}
-- An ack makes room.
alice ~> /meta/connect {"ext": {"ack": 3}}
bob publishes 4 to /ack/bounded
alice <~ /ack/bounded {"data": 4}
         /meta/connect ok {"ext": {"ack": 4}}

# A client that repeats an old ack cannot make its queue grow
! max_queue = 3
alice handshakes with ack
alice subscribes to /ack/abuse
alice connects with ack
bob handshakes
bob -> /ack/abuse {"data": 1}
       /ack/abuse {"data": 2}
       /ack/abuse {"data": 3}
       /ack/abuse {"data": 4}
       /ack/abuse {"data": 5}
bob <- /ack/abuse ok
       /ack/abuse ok
       /ack/abuse ok
       /ack/abuse ok
       /ack/abuse ok
alice -> /meta/connect {"ext": {"ack": 0}, "advice": {"timeout": 0}}
alice <- /ack/abuse {"data": 1}
         /ack/abuse {"data": 2}
         /ack/abuse {"data": 3}
         /meta/connect ok {"ext": {"ack": 2}, "advice": <any>}
bob publishes 6 to /ack/abuse
alice -> /meta/connect {"ext": {"ack": 0}, "advice": {"timeout": 0}}
alice <- /ack/abuse {"data": 1}
         /ack/abuse {"data": 2}
         /ack/abuse {"data": 3}
         /meta/connect ok {"ext": {"ack": 3}, "advice": <any>}

# A session with ack expires like any other
! max_interval = 800
alice handshakes with ack
alice subscribes to /ack/expires
alice connects with ack
1400 ms pass
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /meta/connect error "402::session_unknown" {"advice": {"reconnect": "handshake", "interval": 0, "timeout": 30000}}

# A disconnect releases a held connect with ack
transports: long-polling, callback-polling
alice handshakes with ack
alice connects with ack
alice ~> /meta/connect {"ext": {"ack": 1}}
alice disconnects
alice <~ /meta/connect ok {"advice": {"reconnect": "none", "interval": 0, "timeout": 30000}, "ext": <any>}

# An ack settles all batches up to its own
alice handshakes with ack
alice subscribes to /ack/cumulative
alice connects with ack
bob handshakes
bob publishes 1 to /ack/cumulative
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /ack/cumulative {"data": 1}
         /meta/connect ok {"ext": {"ack": 2}}
bob publishes 2 to /ack/cumulative
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /ack/cumulative {"data": 1}
         /ack/cumulative {"data": 2}
         /meta/connect ok {"ext": {"ack": 3}}
bob publishes 3 to /ack/cumulative
alice -> /meta/connect {"ext": {"ack": 3}}
alice <- /ack/cumulative {"data": 3}
         /meta/connect ok {"ext": {"ack": 4}}
alice -> /meta/connect {"ext": {"ack": 4}, "advice": {"timeout": 0}}
alice <- /meta/connect ok {"ext": {"ack": 5}, "advice": <any>}

# Over a socket, messages come with the connect that superseded a held one
transports: websocket
alice handshakes with ack
alice subscribes to /ack/twice
alice connects with ack
alice ~> /meta/connect {"id": "older", "ext": {"ack": 1}}
alice ~> /meta/connect {"id": "newer", "ext": {"ack": 1}}
bob handshakes
bob publishes 1 to /ack/twice
alice <~ /ack/twice {"data": 1}
         /meta/connect ok {"id": "newer", "ext": {"ack": <integer>}}

# With ack, waiting messages come only with a batch that contains a connect
alice handshakes with ack
alice subscribes to /ack/batched
alice connects with ack
alice -> /ack/batched {"data": 1}
alice <- /ack/batched ok
alice -> /ack/elsewhere {"data": 0}
         /meta/connect {"ext": {"ack": 1}}
alice <- /ack/batched {"data": 1}
         /ack/elsewhere ok
         /meta/connect ok {"ext": {"ack": 2}}
