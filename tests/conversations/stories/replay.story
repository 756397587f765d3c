-- The history of channels, for any client.

transports: long-polling, websocket

# A later subscriber gets the newest kept messages after the reply to its subscribe
! channels = {"/replay/**": {"history": 3}}
bob -> /meta/handshake
bob <- /meta/handshake ok {"clientId": new $bob, "ext": {"replay": true}, ...}
bob publishes 1 to /replay/kept
bob publishes 2 to /replay/kept
bob publishes 3 to /replay/kept
bob publishes 4 to /replay/kept
alice -> /meta/handshake
alice <- /meta/handshake ok {"clientId": new $alice, ...}
alice connects
alice -> /meta/subscribe {"subscription": "/replay/kept", "ext": {"delivery": {"history": {"numEntries": 2, "newestFirst": false}}}}
on long-polling:
    alice <- /meta/subscribe ok
             /replay/kept {"data": 3}
             /replay/kept {"data": 4}
on websocket:
    alice <- /meta/subscribe ok
    alice <- /replay/kept {"data": 3}
             /replay/kept {"data": 4}
alice disconnects

# Kept messages that a client catches up with have cursors
! channels = {"/replay/**": {"history": 1}}
bob -> /meta/handshake
bob <- /meta/handshake ok {"clientId": new $bob, ...}
bob publishes "a" to /replay/all/one
bob publishes "b" to /replay/all/two
alice -> /meta/handshake
alice <- /meta/handshake ok {"clientId": new $alice, ...}
alice connects
alice -> /meta/subscribe {"subscription": "/replay/all/*", "ext": {"replay": -2}}
on long-polling:
    alice <- /meta/subscribe ok {"ext": {"replay": {"messages": 2, ...}}}
             /replay/all/one {"data": "a", "ext": {"replay": {...}}}
             /replay/all/two {"data": "b", "ext": {"replay": {...}}}
on websocket:
    alice <- /meta/subscribe ok {"ext": {"replay": {"messages": 2, ...}}}
    alice <- /replay/all/one {"data": "a", "ext": {"replay": {...}}}
             /replay/all/two {"data": "b", "ext": {"replay": {...}}}
alice disconnects

# A client that catches up is told of messages that are no longer kept
! channels = {"/replay/**": {"history": 1}}
bob -> /meta/handshake
bob <- /meta/handshake ok {"clientId": new $bob, ...}
bob publishes 1 to /replay/lost
bob publishes 2 to /replay/lost
alice -> /meta/handshake
alice <- /meta/handshake ok {"clientId": new $alice, ...}
alice connects
alice -> /meta/subscribe {"subscription": "/replay/lost", "ext": {"replay": {"time": 0}}}
on long-polling:
    alice <- /meta/subscribe ok {"ext": {"replay": {"recovered": false, "lost": {"/replay/lost": {"from": 0, ...}}, ...}}}
             /replay/lost {"data": 2, "ext": {...}}
on websocket:
    alice <- /meta/subscribe ok {"ext": {"replay": {"recovered": false, ...}}}
    alice <- /replay/lost {"data": 2, "ext": {...}}
alice disconnects

# With newestOnly, only the newest waiting message of each channel is delivered
transports: long-polling
alice handshakes
alice -> /meta/subscribe {"subscription": "/replay/newest/*", "ext": {"delivery": {"newestOnly": true}}}
alice <- /meta/subscribe ok
bob handshakes
bob publishes 1 to /replay/newest/a
bob publishes 2 to /replay/newest/b
bob publishes 3 to /replay/newest/a
alice -> /meta/connect
alice <- /replay/newest/b {"data": 2}
         /replay/newest/a {"data": 3}
         /meta/connect ok {...}
alice disconnects

# A subscribe that wants to catch up from an invalid place is refused
alice handshakes
alice -> /meta/subscribe {"subscription": "/replay/none", "ext": {"replay": "nowhere"}}
alice <- /meta/subscribe error "400:user.illegalArgument,replay:ext_invalid"
alice disconnects
