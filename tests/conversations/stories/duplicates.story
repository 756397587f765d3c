-- A connect of a session that already has one held.

# A newer connect supersedes the held one, which fails
pins: 33
transports: long-polling, callback-polling
alice handshakes
alice subscribes to /duplicates/newer
alice connects
alice ~> /meta/connect {"id": "older"}
alice ~> /meta/connect {"id": "newer"}
alice <~ 409 {"channel": "/meta/connect", "id": "older", "successful": false, "error": "409::connect_superseded"}
alice is held
bob handshakes
bob publishes "hello" to /duplicates/newer
alice <~ /duplicates/newer {"data": "hello"}
         /meta/connect ok {"id": "newer"}

# Over a socket, a newer connect supersedes the held one without a reply
pins: 33
transports: websocket
! timeout = 600
alice handshakes
alice connects
alice ~> /meta/connect {"id": "older"}
alice ~> /meta/connect {"id": "newer"}
alice is held
alice <~ /meta/connect ok {"id": "newer"}
alice is held for 100 ms

# The status of a superseded connect is a setting
pins: 33
transports: long-polling, callback-polling
! duplicate_meta_connect_http_response_code = 500
alice handshakes
alice connects
alice ~> /meta/connect {"id": "older"}
alice ~> /meta/connect {"id": "newer"}
alice <~ 500
alice is held

# A newer connect that asks for no hold is answered at once and the older one fails
transports: long-polling, callback-polling
alice handshakes
alice connects
alice ~> /meta/connect {"id": "older"}
alice -> /meta/connect {"id": "newer", "advice": {"timeout": 0}}
alice <- /meta/connect ok {"id": "newer", "advice": {"reconnect": "retry", "interval": 0, "timeout": 30000}}
alice <~ 409 /meta/connect error "409::connect_superseded" {"id": "older"}

# After a client gives up a connect, the next is answered at once and the one after it is held
pins: 34
transports: long-polling, callback-polling
alice handshakes
alice connects
alice ~> /meta/connect
-- The client waits no longer than advised plus maxNetworkDelay.
alice drops
alice -> /meta/connect {"advice": {"timeout": 0}}
alice <- /meta/connect ok {"advice": {"reconnect": "retry", "interval": 0, "timeout": 30000}}
alice ~> /meta/connect
alice is held

# After a socket breaks, the next connect is answered at once and the one after it is held
pins: 34
transports: websocket
alice handshakes
alice connects
alice ~> /meta/connect
alice drops
alice -> /meta/connect {"advice": {"timeout": 0}}
alice <- /meta/connect ok {"advice": {"reconnect": "retry", "interval": 0, "timeout": 30000}}
alice ~> /meta/connect
alice is held

# A connect over another socket supersedes the held one
pins: 54
transports: websocket
alice handshakes
alice subscribes to /duplicates/socket
alice connects
alice ~> /meta/connect
bob shares the cookies of alice
bob ~> /meta/connect {"clientId": $alice}
carol handshakes
carol publishes "hello" to /duplicates/socket
bob <- /duplicates/socket {"data": "hello"}
alice hears nothing

# A connect in a batch supersedes the held one, which fails
transports: long-polling, callback-polling
alice handshakes
alice connects
alice ~> /meta/connect {"id": "older"}
alice -> /meta/connect {"id": "newer"}
         /meta/subscribe {"subscription": "/duplicates/batched"}
alice <- /meta/connect ok {"id": "newer"}
         /meta/subscribe ok
alice <~ 409 /meta/connect error "409::connect_superseded" {"id": "older"}
