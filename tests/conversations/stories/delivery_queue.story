-- The terms that receivers may agree on, and how queues end.

transports: long-polling, websocket

# The reply to a handshake has all terms of the session, and every event has the secret
alice -> /meta/handshake {"ext": {"ack": true, "delivery": {"retries": 1, "delay": 1000, "secret": "topsecret"}}}
alice <- /meta/handshake ok {"clientId": new $alice, "ext": {"ack": true, "delivery": {
             "retries": 1, "delay": 1000, "secret": "topsecret", "oneway": false, "responseTimeout": 60000, "maxEntries": -1,
             "onUserException": "continue", "ptp": true, "dispatcherActive": true, "resumed": false, "waiting": 0,
             "session": {"name": <text like client/anonymous/-[0-9]+>}}}, ...}
alice subscribes to /s22
alice -> /meta/connect {"ext": {"ack": 0}}
alice <- /meta/connect ok {"ext": {"ack": 1}}
bob handshakes
bob publishes 1 to /s22
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /s22 {"data": 1, "ext": {"delivery": {"cbSessionId": "topsecret", ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
-- A client that takes the session over brings its own secret.
carol takes /s22 under {"session": "s22/1", "secret": "first"}
bob publishes 2 to /s22
carol -> /meta/handshake {"ext": {"ack": true, "delivery": {"session": "s22/1", "secret": "second"}}}
carol <- /meta/handshake ok {"clientId": new $carol, "ext": {"ack": true, "delivery": {"resumed": true, "waiting": 1, "secret": "second", ...}}, ...}
carol -> /meta/connect {"ext": {"ack": 0}}
carol <- /s22 {"data": 2, "ext": {"delivery": {"cbSessionId": "second", ...}}}
         /meta/connect ok {"ext": {"ack": 1}}
carol ends the session
alice disconnects

# A message to a oneway receiver is settled by its hand-over
walter watches the dead letters
alice -> /meta/handshake {"ext": {"delivery": {"oneway": true}}}
alice <- /meta/handshake ok {"clientId": new $alice, "ext": {"delivery": {"oneway": true, ...}}, ...}
alice subscribes to /s23
alice connects
alice ~> /meta/connect
bob handshakes
bob publishes 1 to /s23
alice <~ /s23 {"data": 1, "ext": {"delivery": {"seq": 1, ...}}}
         /meta/connect ok
alice ~> /meta/connect {"ext": {"delivery": {"verdicts": [{"seq": 1, "errorCode": "user.update.error"}]}}}
alice is held for 100 ms
walter is held
bob publishes 2 to /s23
alice <~ /s23 {"data": 2, "ext": {"delivery": {"seq": 2, ...}}}
         /meta/connect ok
alice disconnects
walter leaves while waiting

# One subscription may be oneway while the others need an ack
walter watches the dead letters
alice takes /s23/both
alice -> /meta/subscribe {"subscription": "/s23/oneway", "ext": {"delivery": {"oneway": true}}}
alice <- /meta/subscribe ok
bob handshakes
bob -> /s23/oneway {"data": 1}
       /s23/both {"data": 2}
bob <- /s23/oneway ok
       /s23/both ok
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /s23/oneway {"data": 1, "ext": {"delivery": {"seq": 1, ...}}}
         /s23/both {"data": 2, "ext": {"delivery": {"seq": 2, ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
-- She seems to have missed that reply; the oneway message does not come again.
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /s23/both {"data": 2, "ext": {"delivery": {"seq": 3, "redelivered": 1, ...}}}
         /meta/connect ok {"ext": {"ack": 3}}
-- Nor can it be refused.
alice ~> /meta/connect {"ext": {"ack": 2, "delivery": {"pending": [3], "verdicts": [{"seq": 1, "errorCode": "user.update.error"}]}}}
alice is held for 100 ms
walter is held
alice -> /service/delivery {"data": [{"seq": 3, "errorCode": "user.update.error"}]}
alice <- /service/delivery ok
walter <~ /sys/deadMessage {"data": {"content": 2, "channel": "/s23/both", ...}, ...}
          /meta/connect ok {"ext": {"ack": 2}}
alice leaves while waiting
-- A second subscribe without oneway makes acks necessary again.
alice takes /s23/again
alice -> /meta/subscribe {"subscription": "/s23/again", "ext": {"delivery": {"oneway": true}}}
alice <- /meta/subscribe ok
alice subscribes to /s23/again
bob publishes 3 to /s23/again
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /s23/again {"data": 3, ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /s23/again {"data": 3, "ext": {"delivery": {"redelivered": 1, ...}}}
         /meta/connect ok {"ext": {"ack": 3}}
alice disconnects
walter disconnects

# Three bursts get all their replies, and arrive complete and in order
alice takes /s24
bob handshakes
bob -> 12 times /s24 {"data": "a1"}
       8 times /s24 {"data": "a2"}
bob <- 20 times /s24 ok
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- 12 times /s24 {"data": "a1", ...}
         8 times /s24 {"data": "a2", ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice ~> /meta/connect {"ext": {"ack": 2}}
bob -> 12 times /s24 {"data": "b1"}
       8 times /s24 {"data": "b2"}
bob <- 20 times /s24 ok
alice <~ 12 times /s24 {"data": "b1", ...}
         8 times /s24 {"data": "b2", ...}
         /meta/connect ok {"ext": {"ack": 3}}
alice ~> /meta/connect {"ext": {"ack": 3}}
bob -> 12 times /s24 {"data": "c1"}
       8 times /s24 {"data": "c2"}
bob <- 20 times /s24 ok
alice <~ 12 times /s24 {"data": "c1", ...}
         8 times /s24 {"data": "c2", ...}
         /meta/connect ok {"ext": {"ack": 4}}
alice ~> /meta/connect {"ext": {"ack": 4}}
alice is held
alice leaves while waiting

# A client that disconnects leaves no dead letters
walter watches the dead letters
alice takes /s76/leaves
bob handshakes
bob publishes "in flight" to /s76/leaves
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /s76/leaves {"data": "in flight", ...}
         /meta/connect ok {"ext": {"ack": 2}}
bob publishes "waiting" to /s76/leaves
-- Events travel with connects only, and she will not connect again.
alice -> /meta/disconnect
alice <- /meta/disconnect ok
walter is held for 100 ms
walter leaves while waiting

# A client that disconnects while held back leaves no dead letters either
walter watches the dead letters
alice takes /s76/held under {"dispatcherActive": false}
bob handshakes
bob -> /s76/held {"data": 1}
       /s76/held {"data": 2}
bob <- /s76/held ok
       /s76/held ok
alice -> /meta/disconnect
alice <- /meta/disconnect ok
walter is held for 100 ms
walter leaves while waiting

# A client that leaves a named session may return to it
walter watches the dead letters
alice takes /s76/named under {"session": "s76/1"}
bob handshakes
bob publishes 1 to /s76/named
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /s76/named {"data": 1, ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice disconnects
bob publishes 2 to /s76/named
alice -> /meta/handshake {"ext": {"ack": true, "delivery": {"session": "s76/1"}}}
alice <- /meta/handshake ok {"clientId": new $alice, "ext": {"ack": true, "delivery": {"resumed": true, "waiting": 2, ...}}, ...}
alice -> /meta/connect {"ext": {"ack": 0}}
alice <- /s76/named {"data": 1, "ext": {"delivery": {"redelivered": 1, ...}}}
         /meta/connect ok {"ext": {"ack": 1}}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /s76/named {"data": 2, "ext": {"delivery": {"redelivered": absent, ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
-- She may also end it, which discards its messages without dead letters.
bob publishes 3 to /s76/named
alice ends the session
walter is held for 100 ms
alice -> /meta/handshake {"ext": {"ack": true, "delivery": {"session": "s76/1"}}}
alice <- /meta/handshake ok {"clientId": new $alice, "ext": {"ack": true, "delivery": {"resumed": false, "waiting": 0, ...}}, ...}
alice ends the session
walter leaves while waiting

# A message that a full queue refuses is a dead letter for its receiver alone
walter watches the dead letters
alice takes /s77 under {"session": "s77/1", "dispatcherActive": false, "queue": {"maxEntries": 2}}
carol takes /s77
bob handshakes
bob -> /s77 {"data": 1}
       /s77 {"data": 2}
       /s77 {"data": 3}
       /s77 {"data": 4}
       /s77 {"data": 5}
bob <- /s77 ok
       /s77 ok
       /s77 ok
       /s77 ok
       /s77 ok
walter <~ /sys/deadMessage {"data": {"content": 3, "receiver": "client/s77/1", "errorCode": "resource.overflow.queue.entries", ...}, ...}
          /sys/deadMessage {"data": {"content": 4, "receiver": "client/s77/1", "errorCode": "resource.overflow.queue.entries", ...}, ...}
          /sys/deadMessage {"data": {"content": 5, "receiver": "client/s77/1", "errorCode": "resource.overflow.queue.entries", ...}, ...}
          /meta/connect ok {"ext": {"ack": 2}}
walter ~> /meta/connect {"ext": {"ack": 2}}
carol -> /meta/connect {"ext": {"ack": 1}}
carol <- /s77 {"data": 1, ...}
         /s77 {"data": 2, ...}
         /s77 {"data": 3, ...}
         /s77 {"data": 4, ...}
         /s77 {"data": 5, ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice ~> /meta/connect {"ext": {"ack": 1}}
olga operates
olga sets "client/s77/1/?dispatcherActive" to "true"
alice <~ /s77 {"data": 1, ...}
         /s77 {"data": 2, ...}
         /meta/connect ok {"ext": {"ack": 2}}
-- Unacked messages count too.
bob publishes 6 to /s77
walter <~ /sys/deadMessage {"data": {"content": 6, "receiver": "client/s77/1", "errorCode": "resource.overflow.queue.entries", ...}, ...}
          /meta/connect ok {"ext": {"ack": 3}}
alice ~> /meta/connect {"ext": {"ack": 2}}
bob publishes 7 to /s77
alice <~ /s77 {"data": 7, ...}
         /meta/connect ok {"ext": {"ack": 3}}
alice ends the session
carol disconnects
walter disconnects

# A takeover redelivers what was in flight, and the former client is told to give up
alice takes /queue/over under {"session": "over/1"}
bob handshakes
bob publishes 1 to /queue/over
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /queue/over {"data": 1, "ext": {"delivery": {"seq": 1, "redelivered": absent, ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
alice ~> /meta/connect {"ext": {"ack": 1, "delivery": {"pending": [1]}}}
carol -> /meta/handshake {"ext": {"ack": true, "delivery": {"session": "over/1"}}}
carol <- /meta/handshake ok {"clientId": new $carol, "ext": {"ack": true, "delivery": {"resumed": true, "waiting": 1, ...}}, ...}
alice <~ /meta/connect error "402::session_taken" {"advice": {"reconnect": "none", ...}}
carol -> /meta/connect {"ext": {"ack": 0}}
carol <- /queue/over {"data": 1, "ext": {"delivery": {"seq": 2, "redelivered": 1, ...}}}
         /meta/connect ok {"ext": {"ack": 1}}
alice -> /meta/connect {"ext": {"ack": 2}}
alice <- /meta/connect error "402::session_taken" {"advice": {"reconnect": "none", ...}}
alice -> /queue/over {"data": 0}
alice <- /queue/over error "402::session_taken" {"advice": {"reconnect": "none", ...}}
-- Nobody else learns that the id was good.
mallory handshakes
mallory -> /meta/connect {"clientId": $alice}
mallory <- /meta/connect error "402::session_unknown" {"advice": {"reconnect": "handshake", ...}}
mallory -> /queue/over {"data": 0, "clientId": $alice}
mallory <- /queue/over error "402::session_unknown"
-- The subscription is carol's now.
bob publishes 2 to /queue/over
carol -> /meta/connect {"ext": {"ack": 1}}
carol <- /queue/over {"data": 2, "ext": {"delivery": {"redelivered": absent, ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
carol ends the session
