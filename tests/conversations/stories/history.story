-- What channels keep, and who gets it.

transports: long-polling, websocket
! channels = {"/kept/1/*": {"history": 1}, "/kept/2/*": {"history": 2}, "/kept/5/*": {"history": 5}}

# A channel keeps as many messages as its depth says
bob -> /meta/handshake
bob <- /meta/handshake ok {"clientId": new $bob, ...}
bob -> 4 times /kept/0/a {"data": "older"}
       /kept/0/a {"data": "newest"}
       4 times /kept/1/a {"data": "older"}
       /kept/1/a {"data": "newest"}
       4 times /kept/2/a {"data": "older"}
       /kept/2/a {"data": "newest"}
       4 times /kept/5/a {"data": "older"}
       /kept/5/a {"data": "newest"}
bob <- 5 times /kept/0/a ok
       5 times /kept/1/a ok
       5 times /kept/2/a ok
       5 times /kept/5/a ok
alice -> /meta/handshake {"ext": {"ack": true, "delivery": true}}
alice <- /meta/handshake ok {"clientId": new $alice, ...}
alice -> /meta/subscribe {"subscription": ["/kept/0/a"], "ext": {"delivery": {"history": {"numEntries": 2}}}}
         /meta/subscribe {"subscription": ["/kept/1/a"], "ext": {"delivery": {"history": {"numEntries": 2}}}}
         /meta/subscribe {"subscription": ["/kept/2/a"], "ext": {"delivery": {"history": {"numEntries": 2, "newestFirst": false}}}}
         /meta/subscribe {"subscription": ["/kept/5/a"], "ext": {"delivery": {"history": {"numEntries": 2, "newestFirst": false}}}}
alice <- 4 times /meta/subscribe ok {...}
alice -> /meta/connect {"ext": {"ack": 0}}
alice <- /kept/1/a {"data": "newest", "ext": {"delivery": {"initial": true, ...}, ...}}
         /kept/2/a {"data": "older", ...}
         /kept/2/a {"data": "newest", ...}
         /kept/5/a {"data": "older", ...}
         /kept/5/a {"data": "newest", ...}
         /meta/connect ok {"ext": {"ack": 1}, ...}
alice disconnects

# A subscriber gets kept messages only if it asks for them, with a pattern too
bob -> /meta/handshake
bob <- /meta/handshake ok {"clientId": new $bob, ...}
bob -> /kept/1/update {"data": "old", "ext": {"delivery": {"properties": {"threeKey": 55}}}}
bob <- /kept/1/update ok {...}
alice -> /meta/handshake {"ext": {"ack": true, "delivery": true}}
alice <- /meta/handshake ok {"clientId": new $alice, ...}
alice -> /meta/subscribe {"subscription": "/kept/1/update", "ext": {"delivery": {"initialUpdate": false}}}
alice <- /meta/subscribe ok
alice -> /meta/connect {"ext": {"ack": 0}}
alice <- /meta/connect ok {"ext": {"ack": 1}}
carol -> /meta/handshake {"ext": {"ack": true, "delivery": true}}
carol <- /meta/handshake ok {"clientId": new $carol, ...}
carol -> /meta/subscribe {"subscription": "/kept/1/*", "ext": {"delivery": {"initialUpdate": true, "filter": "channel = '/kept/1/update'"}}}
carol <- /meta/subscribe ok {...}
carol -> /meta/connect {"ext": {"ack": 0}}
carol <- /kept/1/update {"data": "old", "ext": {"delivery": {"initial": true, "properties": {"threeKey": 55}, ...}, ...}}
         /meta/connect ok {"ext": {"ack": 1}, ...}
bob publishes "new" to /kept/1/update
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /kept/1/update {"data": "new", "ext": {"delivery": {"initial": absent, ...}, ...}}
         /meta/connect ok {"ext": {"ack": 2}, ...}
carol -> /meta/connect {"ext": {"ack": 1}}
carol <- /kept/1/update {"data": "new", ...}
         /meta/connect ok {"ext": {"ack": 2}, ...}
alice disconnects
carol disconnects

# With newestOnly, a client that was away gets only the newest message
alice -> /meta/handshake {"ext": {"ack": true, "delivery": {"session": "newest/1"}}}
alice <- /meta/handshake ok {"clientId": new $alice, ...}
alice -> /meta/subscribe {"subscription": "/kept/0/newest", "ext": {"delivery": {"newestOnly": true}}}
alice <- /meta/subscribe ok
alice -> /meta/connect {"ext": {"ack": 0}}
alice <- /meta/connect ok {"ext": {"ack": 1}}
alice disconnects
bob -> /meta/handshake
bob <- /meta/handshake ok {"clientId": new $bob, ...}
bob publishes "1" to /kept/0/newest
bob publishes "2" to /kept/0/newest
bob publishes "3" to /kept/0/newest
alice -> /meta/handshake {"ext": {"ack": true, "delivery": {"session": "newest/1"}}}
alice <- /meta/handshake ok {"clientId": new $alice, ...}
alice -> /meta/connect {"ext": {"ack": 0}}
alice <- /kept/0/newest {"data": "3", ...}
         /meta/connect ok {"ext": {"ack": 1}, ...}
alice -> /meta/connect {"ext": {"ack": 1}, "advice": {"timeout": 0}}
alice <- /meta/connect ok {"ext": {"ack": 2}, ...}
alice ends the session

# A message with a lifetime of zero is never kept
bob -> /meta/handshake
bob <- /meta/handshake ok {"clientId": new $bob, ...}
bob -> /kept/5/lives {"data": "for an hour", "ext": {"delivery": {"expiration": {"lifeTime": 3600000}}}}
       /kept/5/lives {"data": "volatile", "ext": {"delivery": {"expiration": {"lifeTime": 0}}}}
bob <- 2 times /kept/5/lives ok {...}
alice -> /meta/handshake {"ext": {"ack": true, "delivery": true}}
alice <- /meta/handshake ok {"clientId": new $alice, ...}
alice -> /meta/subscribe {"subscription": "/kept/5/lives", "ext": {"delivery": {"history": {"numEntries": 1}}}}
alice <- /meta/subscribe ok {...}
alice -> /meta/connect {"ext": {"ack": 0}}
alice <- /kept/5/lives {"data": "for an hour", ...}
         /meta/connect ok {"ext": {"ack": 1}, ...}
alice disconnects
