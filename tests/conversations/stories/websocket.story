-- What is specific to WebSocket: frames, sockets and how they end.

transports: websocket

# The reply to a handshake comes in a frame of its own
alice -> /meta/handshake
alice <- frame /meta/handshake ok {"clientId": new $alice, ...}

# Replies to a batch come in one frame, in order
pins: 53
alice handshakes
alice -> /websocket/a {"data": 1}
         /meta/subscribe {"subscription": "/websocket/b"}
         /websocket/c {"data": 2}
alice <- frame
    /websocket/a ok
    /meta/subscribe ok
    /websocket/c ok

# Events come in frames of their own before the replies
alice handshakes
alice subscribes to /websocket/own
alice -> /websocket/own {"data": 1}
         /websocket/own {"data": 2}
alice <- frame /websocket/own {"data": 1}
alice <- frame /websocket/own {"data": 2}
alice <- frame
    /websocket/own ok
    /websocket/own ok

# Up to ws_messages_per_frame events share a frame
! ws_messages_per_frame = 2
alice handshakes
alice subscribes to /websocket/shared
bob handshakes
bob -> /websocket/shared {"data": 1}
       /websocket/shared {"data": 2}
       /websocket/shared {"data": 3}
bob <- /websocket/shared ok
       /websocket/shared ok
       /websocket/shared ok
alice <- frame
    /websocket/shared {"data": 1}
    /websocket/shared {"data": 2}
alice <- frame /websocket/shared {"data": 3}

# Events that come with a connect have frames of their own before its reply
alice handshakes with ack
alice subscribes to /websocket/ack
alice connects with ack
alice ~> /meta/connect {"ext": {"ack": 1}}
bob handshakes
bob -> /websocket/ack {"data": 1}
       /websocket/ack {"data": 2}
bob <- /websocket/ack ok
       /websocket/ack ok
alice <- frame /websocket/ack {"data": 1}
alice <- frame /websocket/ack {"data": 2}
alice <- frame /meta/connect ok {"ext": {"ack": 2}}

# A message is pushed even before the first connect
alice handshakes
alice subscribes to /websocket/early
bob handshakes
bob publishes 1 to /websocket/early
alice <- /websocket/early {"data": 1}
alice connects

# Other messages are answered while a connect is held
alice handshakes
alice connects
alice ~> /meta/connect
alice subscribes to /websocket/meanwhile
alice publishes 1 to /websocket/elsewhere
alice is held

# A malformed frame closes the socket with 1007
alice handshakes
alice -> body: [{"channel": "/meta/connect"
alice <- closed 1007
bob -> body: This is not JSON
bob <- closed 1007
carol -> body: []
carol <- closed 1007
dave -> body: [1]
dave <- closed 1007

# A text frame that is not UTF-8 closes the socket with 1007
alice -> body in hex: 5b7b2278223a22ff227d5d
alice <- closed 1007

# A binary frame closes the socket with 1003
alice -> body in binary: [{"channel": "/meta/handshake"}]
alice <- closed 1003

# A malformed frame closes the socket but does not end the session
alice handshakes
alice subscribes to /websocket/survives
alice connects
alice -> body: [
alice <- closed 1007
bob handshakes
bob publishes "hello" to /websocket/survives
alice -> /meta/connect
alice <- /websocket/survives {"data": "hello"}
         /meta/connect ok

# A frame that is too large closes the socket with 1009
! max_message_size = 1000
! max_request_size = 3000
alice handshakes
alice -> /websocket/large {"data": <text of 4000 characters>}
alice <- closed 1009

# A session continues over a new socket
pins: 54
alice handshakes
alice subscribes to /websocket/resumed
alice connects
alice ~> /meta/connect
alice drops
alice ~> /meta/connect
bob handshakes
bob publishes "hello" to /websocket/resumed
alice <- /websocket/resumed {"data": "hello"}
alice is held

# Messages that were published while there was no socket wait for the next one
pins: 54
alice handshakes
alice subscribes to /websocket/between
alice connects
alice ~> /meta/connect
alice drops
bob handshakes
bob publishes 1 to /websocket/between
bob publishes 2 to /websocket/between
alice -> /meta/connect {"advice": {"timeout": 0}}
alice <- /websocket/between {"data": 1}
         /websocket/between {"data": 2}
         /meta/connect ok {"advice": <any>}

# A session continues over a new socket after a close frame
alice handshakes
alice subscribes to /websocket/farewell
alice connects
alice closes
bob handshakes
bob publishes 1 to /websocket/farewell
alice -> /meta/connect
alice <- /websocket/farewell {"data": 1}
         /meta/connect ok

# Any message continues the session over a new socket
alice handshakes
alice connects
alice drops
alice -> /meta/subscribe {"subscription": "/websocket/any"}
alice <- /meta/subscribe ok
alice -> /websocket/any {"data": 1}
alice <- /websocket/any {"data": 1}
         /websocket/any ok

# A setting requires a handshake on every socket
! ws_require_handshake_per_connection = true
alice handshakes
alice connects
alice drops
alice -> /meta/connect
alice <- /meta/connect error "402::session_unknown" {"advice": {"reconnect": "handshake", "interval": 0, "timeout": 30000}}
alice handshakes
alice connects

# A held connect is answered at its timeout although messages were pushed
! timeout = 600
alice handshakes
alice subscribes to /websocket/heartbeat
alice connects
alice ~> /meta/connect
bob handshakes
bob publishes 1 to /websocket/heartbeat
alice <- /websocket/heartbeat {"data": 1}
alice is held
alice <~ /meta/connect ok
alice ~> /meta/connect
alice <~ /meta/connect ok

# The upgrade gives the browser a cookie
alice -> UPGRADE /cometd
alice <- 101
    Set-Cookie: BAYEUX_BROWSER=<text like [0-9A-Za-z_-]{16,}>; <text like (Path=/; HttpOnly|HttpOnly; Path=/)>
alice handshakes

# An upgrade with a cookie sets no second one
alice -> UPGRADE /cometd
alice <- 101
alice drops
alice -> UPGRADE /cometd
alice <- 101
    Set-Cookie: absent

# A cookie that the server did not give is replaced
alice -> UPGRADE /cometd
    Cookie: BAYEUX_BROWSER=mine
alice <- 101
    Set-Cookie: BAYEUX_BROWSER=<text like [0-9A-Za-z_-]{16,}>; <text like (Path=/; HttpOnly|HttpOnly; Path=/)>

# A session does not continue over another browser's socket
alice -> UPGRADE /cometd
    Origin: $server
alice <- 101
alice handshakes
alice connects
alice forgets the cookies
alice drops
alice -> UPGRADE /cometd
    Origin: $server
alice <- 101
alice -> /meta/connect
alice <- /meta/connect error "402::session_unknown" {"advice": {"reconnect": "handshake", "interval": 0, "timeout": 30000}}

# A socket can be opened below either mount point, with any suffix
alice -> UPGRADE /bayeux
alice <- 101
bob -> UPGRADE /cometd/
bob <- 101
carol -> UPGRADE /cometd/handshake
carol <- 101

# The configured subprotocol is agreed on
pins: 57
! ws_protocol = "bayeux.cometd"
alice -> UPGRADE /cometd
    Sec-WebSocket-Protocol: other, bayeux.cometd
alice <- 101
    Sec-WebSocket-Protocol: bayeux.cometd

# Another subprotocol is refused
pins: 57
! ws_protocol = "bayeux.cometd"
alice -> UPGRADE /cometd
    Sec-WebSocket-Protocol: other
alice <- refused 400

# With WebSocket disabled, the upgrade is refused
! transports = ["long-polling", "callback-polling"]
alice -> UPGRADE /cometd
alice <- refused 400

# A second handshake on a socket begins a new session
alice handshakes
alice subscribes to /websocket/second
alice connects
alice handshakes
alice connects
bob handshakes
bob publishes 1 to /websocket/second
alice hears nothing

# A reply to a connect that the client gave up does no harm
pins: 56
! timeout = 600
alice handshakes
alice connects
alice ~> /meta/connect {"id": "slow"}
alice -> /meta/connect {"id": "retry", "advice": {"timeout": 0}}
alice <- /meta/connect ok {"id": "retry", "advice": {"reconnect": "retry", "interval": 0, "timeout": 600}}
alice is held for 900 ms
alice ~> /meta/connect {"id": "last"}
alice <~ /meta/connect ok {"id": "last"}

# A message of an unknown session leaves the socket open
alice -> /meta/subscribe {"subscription": "/websocket/nobody"}
alice <- /meta/subscribe error "402:send the clientId:client_id_missing"
alice -> /websocket/nobody {"data": 1}
alice <- /websocket/nobody error "402:send the clientId:client_id_missing"
alice handshakes
alice connects

# A refused handshake leaves the socket open for another
alice -> /meta/handshake {"supportedConnectionTypes": []}
alice <- frame /meta/handshake error "406::connection_types_unsupported" {...}
alice handshakes
alice connects

# An idle socket is closed, but its session continues
! ws_idle_timeout = 600
alice handshakes
alice connects
900 ms pass
alice <- closed 1001
alice -> /meta/connect {"advice": {"timeout": 0}}
alice <- /meta/connect ok {"advice": <any>}
