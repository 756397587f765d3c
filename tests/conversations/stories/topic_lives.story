-- Topics: what refers to them, what state that gives them, and how they end.

transports: long-polling, websocket
! channels = {"/topics/**": {"topic": true, "destroy_delay": 0}}

# A topic that nothing refers to stays for its destroy delay
bob handshakes
bob -> /topics/delay {"data": 1, "ext": {"delivery": {"topic": {"destroyDelay": 500}}}}
bob <- /topics/delay ok {...}
bob finds /topics/delay UNREFERENCED
250 ms pass
-- Another message restarts the delay.
bob publishes 2 to /topics/delay
bob finds /topics/delay UNREFERENCED
900 ms pass
bob finds no topic /topics/delay

# A topic of volatile messages ends when these are settled, even if a pattern covers it
bob handshakes
bob -> /topics/volatile/a {"data": 1, "ext": {"delivery": {"expiration": {"lifeTime": 0}}}}
bob <- /topics/volatile/a ok {...}
bob finds no topic /topics/volatile/a
alice takes /topics/volatile/*
bob -> /topics/volatile/a {"data": 2, "ext": {"delivery": {"expiration": {"lifeTime": 0}}}}
bob <- /topics/volatile/a ok {...}
bob finds /topics/volatile/a ALIVE
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /topics/volatile/a {"data": 2, ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice -> /meta/connect {"ext": {"ack": 2}, "advice": {"timeout": 0}}
alice <- /meta/connect ok {"ext": {"ack": 3}, ...}
bob finds no topic /topics/volatile/a
-- The subscription is still there.
bob publishes 3 to /topics/volatile/a
alice -> /meta/connect {"ext": {"ack": 3}}
alice <- /topics/volatile/a {"data": 3, ...}
         /meta/connect ok {"ext": {"ack": 4}}
alice disconnects

# An exact subscription creates a topic, and keeps it until the subscription ends
alice takes /topics/exact
bob handshakes
bob finds /topics/exact UNCONFIGURED
bob -> /topics/exact {"data": 1, "ext": {"delivery": {"expiration": {"lifeTime": 0}}}}
bob <- /topics/exact ok {...}
bob finds /topics/exact ALIVE
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /topics/exact {"data": 1, ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice -> /meta/connect {"ext": {"ack": 2}, "advice": {"timeout": 0}}
alice <- /meta/connect ok {"ext": {"ack": 3}, ...}
bob finds /topics/exact ALIVE
alice unsubscribes from /topics/exact
bob finds no topic /topics/exact
-- The same before anything was published.
alice subscribes to /topics/exact
bob finds /topics/exact UNCONFIGURED
alice unsubscribes from /topics/exact
bob finds no topic /topics/exact
alice disconnects

# All subscribers are notified of the erasure of their topic, and are no longer subscribed
alice takes /topics/erased
carol takes /topics/erased
bob handshakes
bob finds /topics/erased UNCONFIGURED
bob erases /topics/erased
bob finds no topic /topics/erased
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /topics/erased {"data": null, "ext": {"delivery": {"state": "ERASED", "subscription": "/topics/erased", ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
carol -> /meta/connect {"ext": {"ack": 1}}
carol <- /topics/erased {"data": null, "ext": {"delivery": {"state": "ERASED", ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
bob publishes 1 to /topics/erased
alice -> /meta/connect {"ext": {"ack": 2}, "advice": {"timeout": 0}}
alice <- /meta/connect ok {"ext": {"ack": 3}, ...}
-- A topic that does not exist is not erased.
bob -> /service/topics {"data": {"erase": "/topics/erased"}}
bob <- /service/topics {"id": <text>, "data": {"erased": [], "next": null}, "successful": true}
       /service/topics ok
alice disconnects
carol disconnects

# A subscriber with notify false or without ext.delivery is not notified of an erasure
alice takes /topics/silent/*
alice -> /meta/subscribe {"subscription": "/topics/silent/*", "ext": {"delivery": {"notify": false}}}
alice <- /meta/subscribe ok
carol takes /topics/silent/**
dora handshakes
dora subscribes to /topics/silent/a
dora connects
bob handshakes
bob erases /topics/silent/a
carol -> /meta/connect {"ext": {"ack": 1}}
carol <- /topics/silent/a {"data": null, "ext": {"delivery": {"state": "ERASED", "subscription": "/topics/silent/**", ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
alice -> /meta/connect {"ext": {"ack": 1}, "advice": {"timeout": 0}}
alice <- /meta/connect ok {"ext": {"ack": 2}, ...}
dora -> /meta/connect {"advice": {"timeout": 0}}
dora <- /meta/connect ok {...}
alice disconnects
carol disconnects
dora disconnects

# After an erasure, a receiver may finish what is in flight before the topic ends
alice takes /topics/soft
bob handshakes
bob publishes "in flight" to /topics/soft
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /topics/soft {"data": "in flight", ...}
         /meta/connect ok {"ext": {"ack": 2}}
bob finds /topics/soft ALIVE
bob erases /topics/soft
bob finds /topics/soft SOFTERASED
alice -> /meta/connect {"ext": {"ack": 2}}
alice <- /topics/soft {"data": null, "ext": {"delivery": {"state": "ERASED", ...}}}
         /meta/connect ok {"ext": {"ack": 3}}
alice -> /meta/connect {"ext": {"ack": 3}, "advice": {"timeout": 0}}
alice <- /meta/connect ok {"ext": {"ack": 4}, ...}
bob finds no topic /topics/soft
alice disconnects

# A message revives a topic that was erased while another message was in flight
alice takes /topics/back/a
carol takes /topics/back/*
bob handshakes
bob publishes "before" to /topics/back/a
bob erases /topics/back/a
bob finds /topics/back/a SOFTERASED
bob publishes "after" to /topics/back/a
bob finds /topics/back/a ALIVE
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /topics/back/a {"data": "before", ...}
         /topics/back/a {"data": null, "ext": {"delivery": {"state": "ERASED", ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
carol -> /meta/connect {"ext": {"ack": 1}}
carol <- /topics/back/a {"data": "before", ...}
         /topics/back/a {"data": null, "ext": {"delivery": {"state": "ERASED", ...}}}
         /topics/back/a {"data": "after", ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice disconnects
carol disconnects

# A readonly topic takes one message
! channels = {"/topics/**": {"topic": true, "history": 1}}
alice -> /meta/handshake {"ext": {"ack": true, "delivery": true}}
alice <- /meta/handshake ok {"clientId": new $alice, ...}
alice -> /meta/subscribe {"subscription": "/topics/read"}
alice <- /meta/subscribe ok
alice -> /meta/connect {"ext": {"ack": 0}}
alice <- /meta/connect ok {"ext": {"ack": 1}}
bob -> /meta/handshake
bob <- /meta/handshake ok {"clientId": new $bob, ...}
bob -> /topics/read {"data": "the only one", "ext": {"delivery": {"topic": {"readonly": true}}}}
       /topics/read {"data": "another"}
bob <- /topics/read ok {...}
       /topics/read error "403:user.publish.readonly,/topics/read:topic_readonly"
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /topics/read {"data": "the only one", ...}
         /meta/connect ok {"ext": {"ack": 2}, ...}
-- Only an erasure makes room for another message.
bob erases /topics/read
bob publishes "another" to /topics/read
bob erases /topics/read
alice -> /meta/disconnect
alice <- /meta/disconnect ok

# A message with the same data is delivered unless its publisher sets forceUpdate to false
! channels = {"/topics/**": {"topic": true, "history": 1}}
alice -> /meta/handshake {"ext": {"ack": true, "delivery": true}}
alice <- /meta/handshake ok {"clientId": new $alice, ...}
alice -> /meta/subscribe {"subscription": "/topics/same"}
alice <- /meta/subscribe ok
alice -> /meta/connect {"ext": {"ack": 0}}
alice <- /meta/connect ok {"ext": {"ack": 1}}
bob -> /meta/handshake
bob <- /meta/handshake ok {"clientId": new $bob, ...}
bob -> /topics/same {"data": "same", "ext": {"delivery": {"priority": 1, "forceUpdate": true}}}
       /topics/same {"data": "same", "ext": {"delivery": {"priority": 2, "forceUpdate": true}}}
       /topics/same {"data": "same", "ext": {"delivery": {"priority": 3, "forceUpdate": false}}}
       /topics/same {"data": "same", "ext": {"delivery": {"priority": 4, "forceUpdate": false}}}
       /topics/same {"data": "same", "ext": {"delivery": {"priority": 0, "forceUpdate": true}}}
bob <- 5 times /topics/same ok {...}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /topics/same {"data": "same", "ext": {"delivery": {"priority": 2, ...}}}
         /topics/same {"data": "same", "ext": {"delivery": {"priority": 1, ...}}}
         /topics/same {"data": "same", "ext": {"delivery": {"priority": 0, ...}}}
         /meta/connect ok {"ext": {"ack": 2}, ...}
bob erases /topics/same
alice -> /meta/disconnect
alice <- /meta/disconnect ok

# A client may ask for the history of a topic, and gets nothing from an empty one
! channels = {"/topics/**": {"topic": true, "history": 5}}
bob -> /meta/handshake
bob <- /meta/handshake ok {"clientId": new $bob, ...}
bob -> /service/topics {"data": {"get": "/topics/get"}}
bob <- /service/topics {"id": <text>, "data": {"messages": [], "complete": true}, "successful": true, ...}
       /service/topics ok
bob publishes "older" to /topics/get
bob publishes "newest" to /topics/get
bob -> /service/topics {"data": {"get": "/topics/get"}}
bob <- /service/topics {"id": <text>, "data": {"messages": [{"channel": "/topics/get", "data": "newest", "ext": {"delivery": {"sender": <text>, ...}}}], "complete": true}, "successful": true, ...}
       /service/topics ok
bob -> /service/topics {"data": {"get": "/topics/*", "history": {"numEntries": 2}}}
bob <- /service/topics {"id": <text>, "data": {"messages": [{"data": "newest", ...}, {"data": "older", ...}], "complete": true}, "successful": true, ...}
       /service/topics ok
bob erases /topics/get
bob disconnects

# A named session that was away learns from its handshake which subscriptions it has lost
alice takes /topics/lost under {"session": "away/1"}
alice -> /meta/subscribe {"subscription": "/topics/*"}
alice <- /meta/subscribe ok
alice disconnects
bob handshakes
bob erases /topics/lost
alice -> /meta/handshake {"ext": {"ack": true, "delivery": {"session": "away/1"}}}
alice <- /meta/handshake ok {"clientId": new $alice, "ext": {"ack": true, "delivery": {"resumed": true, "waiting": 1, "lostSubscriptions": ["/topics/lost"], ...}}, ...}
alice -> /meta/connect {"ext": {"ack": 0}}
alice <- /topics/lost {"data": null, "ext": {"delivery": {"state": "ERASED", "subscription": "/topics/*", ...}}}
         /meta/connect ok {"ext": {"ack": 1}, ...}
-- It knows now.
alice -> /meta/handshake {"ext": {"ack": true, "delivery": {"session": "away/1"}}}
alice <- /meta/handshake ok {"clientId": new $alice, "ext": {"ack": true, "delivery": {"resumed": true, "lostSubscriptions": absent, ...}}, ...}
alice -> /meta/disconnect {"ext": {"delivery": {"end": true, "discard": true}}}
alice <- /meta/disconnect ok
