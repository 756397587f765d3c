-- Publishes with keys: a message that is sent again is not delivered again.

transports: long-polling, websocket

# A repeated publish gets the first reply, and arrives once
alice takes /keys/once
bob handshakes
bob -> /keys/once {"data": "hello", "ext": {"delivery": {"key": "k1"}}}
bob <- /keys/once ok {"ext": {"delivery": {"state": "OK", "id": <text>, "rcvTimestamp": new $first}}}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /keys/once {"data": "hello", "ext": {"delivery": {"rcvTimestamp": $first, ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
bob -> /keys/once {"data": "hello", "ext": {"delivery": {"key": "k1"}}}
bob <- /keys/once ok {"ext": {"delivery": {"state": "OK", "id": <text>, "rcvTimestamp": $first}}}
bob -> /keys/once {"data": "another", "ext": {"delivery": {"key": "k2"}}}
bob <- /keys/once ok {"ext": {"delivery": {"state": "OK", "id": <text>, "rcvTimestamp": <text>}}}
alice -> /meta/connect {"ext": {"ack": 2}}
alice <- /keys/once {"data": "another", ...}
         /meta/connect ok {"ext": {"ack": 3}}
alice disconnects

# A repeated publish arrives once in a named session
alice takes /keys/kept under {"session": "keys/1"}
bob handshakes
bob -> /keys/kept {"data": 1, "ext": {"delivery": {"key": "kept"}}}
bob <- /keys/kept ok {"ext": {"delivery": {"state": "OK", "id": <text>, "rcvTimestamp": new $first}}}
bob -> /keys/kept {"data": 1, "ext": {"delivery": {"key": "kept", "persistent": false}}}
bob <- /keys/kept ok {"ext": {"delivery": {"state": "OK", "id": <text>, "rcvTimestamp": $first}}}
bob publishes 2 to /keys/kept
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /keys/kept {"data": 1, "ext": {"delivery": {"queue": {"index": 0, "size": 2}, ...}}}
         /keys/kept {"data": 2, ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice ends the session

# A publish repeated in one request is delivered once and answered twice
alice takes /keys/twice
bob handshakes
bob -> /keys/twice {"data": 1, "ext": {"delivery": {"key": "twice"}}}
       /keys/twice {"data": 1, "ext": {"delivery": {"key": "twice"}}}
       /keys/twice {"data": 2}
bob <- /keys/twice ok {"ext": {"delivery": {"state": "OK", "id": <text>, "rcvTimestamp": new $first}}}
       /keys/twice ok {"ext": {"delivery": {"state": "OK", "id": <text>, "rcvTimestamp": $first}}}
       /keys/twice ok
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /keys/twice {"data": 1, ...}
         /keys/twice {"data": 2, ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice disconnects

# A publish that a reloaded page repeats is delivered once
alice takes /keys/page
bob handshakes
bob -> /keys/page {"data": "order", "ext": {"delivery": {"key": "outbox-1"}}}
bob <- /keys/page ok {"ext": {"delivery": {"state": "OK", "id": <text>, "rcvTimestamp": new $first}}}
bob drops
bob handshakes
bob -> /keys/page {"data": "order", "ext": {"delivery": {"key": "outbox-1"}}}
bob <- /keys/page ok {"ext": {"delivery": {"state": "OK", "id": <text>, "rcvTimestamp": $first}}}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /keys/page {"data": "order", ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice disconnects

# The same key from another publisher makes another message
alice takes /keys/others
bob handshakes
carol handshakes
bob -> /keys/others {"data": "bob's", "ext": {"delivery": {"key": "same"}}}
bob <- /keys/others ok {"ext": {"delivery": {"state": "OK", "id": <text>, "rcvTimestamp": <text>}}}
carol -> /keys/others {"data": "carol's", "ext": {"delivery": {"key": "same"}}}
carol <- /keys/others ok {"ext": {"delivery": {"state": "OK", "id": <text>, "rcvTimestamp": <text>}}}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /keys/others {"data": "bob's", ...}
         /keys/others {"data": "carol's", ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice disconnects

# All sessions of a subject share their publish keys
-- The key is bob's client id, which was never used as a key before.
alice takes /keys/subject
bob -> /meta/handshake {"ext": {"delivery": {"session": "keysbob/1"}}}
bob <- /meta/handshake ok {"clientId": new $bob, "ext": {"delivery": {...}}, ...}
bob -> /keys/subject {"data": 1, "ext": {"delivery": {"key": $bob}}}
bob <- /keys/subject ok {"ext": {"delivery": {"state": "OK", "id": <text>, "rcvTimestamp": new $first}}}
carol -> /meta/handshake {"ext": {"delivery": {"session": "keysbob/2"}}}
carol <- /meta/handshake ok {"clientId": new $carol, "ext": {"delivery": {...}}, ...}
carol -> /keys/subject {"data": 1, "ext": {"delivery": {"key": $bob}}}
carol <- /keys/subject ok {"ext": {"delivery": {"state": "OK", "id": <text>, "rcvTimestamp": $first}}}
dave -> /meta/handshake {"ext": {"delivery": {"session": "keysdave/1"}}}
dave <- /meta/handshake ok {"clientId": new $dave, "ext": {"delivery": {...}}, ...}
dave -> /keys/subject {"data": 2, "ext": {"delivery": {"key": $bob}}}
dave <- /keys/subject ok {"ext": {"delivery": {"state": "OK", "id": <text>, "rcvTimestamp": <text>}}}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /keys/subject {"data": 1, ...}
         /keys/subject {"data": 2, ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice disconnects
bob ends the session
carol ends the session
dave ends the session

# Receivers do not see the key of a publish
alice handshakes
alice subscribes to /keys/secret
bob handshakes
bob -> /keys/secret {"data": 1, "ext": {"delivery": {"key": "secret"}, "mine": 1}}
bob <- /keys/secret ok {"ext": {"delivery": {"state": "OK", "id": <text>, "rcvTimestamp": <text>}}}
on long-polling:
    alice -> /meta/connect
    alice <- {"channel": "/keys/secret", "data": 1, "ext": {"mine": 1}}
             /meta/connect ok
on websocket:
    alice <- {"channel": "/keys/secret", "data": 1, "ext": {"mine": 1}}

# A publish with an invalid key is refused
bob handshakes
bob -> /keys/none {"data": 1, "ext": {"delivery": {"key": ""}}}
       /keys/none {"data": 1, "ext": {"delivery": {"key": 1}}}
       /keys/none {"data": 1, "ext": {"delivery": {"key": <text of 256 characters>}}}
bob <- /keys/none error "400:user.publish,key:delivery_invalid"
       /keys/none error "400:user.publish,key:delivery_invalid"
       /keys/none error "400:user.publish,key:delivery_invalid"
