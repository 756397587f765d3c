-- /meta/disconnect.

transports: long-polling, websocket, callback-polling

# A disconnect ends the session
alice handshakes
alice connects
alice -> /meta/disconnect
alice <- {"channel": "/meta/disconnect", "id": "3", "successful": true}
alice -> /meta/subscribe {"subscription": "/disconnect/ended"}
alice <- /meta/subscribe error "402::session_unknown"

# A disconnect releases the held connect, with advice not to reconnect
pins: 19
transports: long-polling, callback-polling
alice handshakes
alice connects
alice ~> /meta/connect
alice -> /meta/disconnect
alice <- /meta/disconnect ok
alice <~ /meta/connect ok {"advice": {"reconnect": "none", "interval": 0, "timeout": 30000}}

# Over a socket, the released connect comes before the reply to the disconnect
pins: 19
-- cometd.js closes its socket with the disconnect reply, unless a connect is still out.
transports: websocket
alice handshakes
alice connects
alice ~> /meta/connect
alice -> /meta/disconnect
alice <- /meta/connect ok {"advice": {"reconnect": "none", "interval": 0, "timeout": 30000}}
         /meta/disconnect ok

# A connect after the disconnect is told to handshake
pins: 20
alice handshakes
alice connects
alice disconnects
alice -> /meta/connect
alice <- /meta/connect error "402::session_unknown" {"advice": {"reconnect": "handshake", "interval": 0, "timeout": 30000}}

# A connect that a disconnect overtakes fails, and only the next one is told to handshake
pins: 20
alice handshakes
alice connects
alice -> /meta/disconnect
         /meta/connect
alice <- /meta/disconnect ok
         /meta/connect error "402::session_unknown" {"advice": {"reconnect": "none", "interval": 0, "timeout": 30000}}
alice -> /meta/connect
alice <- /meta/connect error "402::session_unknown" {"advice": {"reconnect": "handshake", "interval": 0, "timeout": 30000}}

# Waiting messages come with the reply to the disconnect
transports: long-polling
alice handshakes
alice subscribes to /disconnect/waiting
alice connects
bob handshakes
bob publishes "last words" to /disconnect/waiting
alice -> /meta/disconnect
alice <- /disconnect/waiting {"data": "last words"}
         /meta/disconnect ok

# A disconnect of an unknown session fails without advice
alice -> /meta/disconnect {"clientId": "0123456789abcdef0123456789abcdef"}
alice <- /meta/disconnect error "402::session_unknown"
alice handshakes
alice disconnects
alice -> /meta/disconnect
alice <- /meta/disconnect error "402::session_unknown"

# After a disconnect, nothing is delivered and the session's subscriptions are gone
! extension = ["tests.conversations.policies:listeners"]
alice handshakes
alice subscribes to /disconnect/gone
alice connects
alice disconnects
bob handshakes
alice hears nothing
bob finds nobody on /disconnect/gone

# A client may handshake again after a disconnect
alice handshakes
alice connects
alice disconnects
alice handshakes
alice connects
alice ~> /meta/connect
