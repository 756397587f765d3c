-- Sessions of clients that are gone. The clock runs for interval + maxInterval from the end of the
-- response to a handshake or connect; other messages restart it, and a connect stops it.

transports: long-polling, websocket, callback-polling
! max_interval = 800

# A session that never connects expires
alice handshakes
alice subscribes to /expiry/never
1400 ms pass
alice -> /meta/connect
alice <- /meta/connect error "402::session_unknown" {"advice": {"reconnect": "handshake", "interval": 0, "timeout": 30000}}

# A session that does not connect again expires
pins: 23
alice handshakes
alice connects
1400 ms pass
alice -> /meta/connect
alice <- /meta/connect error "402::session_unknown" {"advice": {"reconnect": "handshake", "interval": 0, "timeout": 30000}}

# A session that connects in time lives on
alice handshakes
alice connects
400 ms pass
alice -> /meta/connect {"advice": {"timeout": 0}}
alice <- /meta/connect ok {"advice": <any>}
400 ms pass
alice -> /meta/connect {"advice": {"timeout": 0}}
alice <- /meta/connect ok {"advice": <any>}
400 ms pass
alice ~> /meta/connect

# A held connect keeps its session alive
alice handshakes
alice subscribes to /expiry/held
alice connects
alice ~> /meta/connect
alice is held for 1400 ms
bob handshakes
bob publishes "still there?" to /expiry/held
on long-polling, callback-polling:
    alice <~ /expiry/held {"data": "still there?"}
             /meta/connect ok
on websocket:
    alice <- /expiry/held {"data": "still there?"}

# Publishing keeps a session alive, but not for ever
pins: 49
alice handshakes
alice connects
400 ms pass
alice publishes 1 to /expiry/publishing
400 ms pass
alice publishes 2 to /expiry/publishing
400 ms pass
alice publishes 3 to /expiry/publishing
1400 ms pass
alice -> /expiry/publishing {"data": 4}
alice <- /expiry/publishing error "402::session_unknown"

# A session whose client vanishes while its connect is held expires
transports: long-polling, callback-polling
alice handshakes
alice connects
alice ~> /meta/connect
alice drops
1400 ms pass
alice -> /meta/connect
alice <- /meta/connect error "402::session_unknown" {"advice": {"reconnect": "handshake", "interval": 0, "timeout": 30000}}

# A client that vanishes and returns in time gets all its messages
transports: long-polling, callback-polling
alice handshakes
alice subscribes to /expiry/back
alice connects
alice ~> /meta/connect
alice drops
bob handshakes
bob publishes 1 to /expiry/back
100 ms pass
alice -> /meta/connect
alice <- /expiry/back {"data": 1}
         /meta/connect ok

# A socket that breaks after the first connect leaves a session that expires
pins: 55
transports: websocket
alice handshakes
alice connects
alice drops
1400 ms pass
alice -> /meta/connect
alice <- /meta/connect error "402::session_unknown" {"advice": {"reconnect": "handshake", "interval": 0, "timeout": 30000}}

# A socket that breaks while a connect is held leaves a session that expires
pins: 55
transports: websocket
alice handshakes
alice connects
alice ~> /meta/connect
alice drops
1400 ms pass
alice -> /meta/connect
alice <- /meta/connect error "402::session_unknown" {"advice": {"reconnect": "handshake", "interval": 0, "timeout": 30000}}

# An interval that the client announces is added to its session timeout
alice handshakes
alice -> /meta/connect {"advice": {"interval": 1500}}
alice <- /meta/connect ok {"advice": {"reconnect": "retry", "interval": 1500, "timeout": 30000}}
1500 ms pass
alice -> /meta/connect {"advice": {"timeout": 0}}
alice <- /meta/connect ok {"advice": {"reconnect": "retry", "interval": 0, "timeout": 30000}}
1400 ms pass
alice -> /meta/connect
alice <- /meta/connect error "402::session_unknown" {"advice": {"reconnect": "handshake", "interval": 0, "timeout": 30000}}

# The subscriptions of a session end with it
! extension = ["tests.conversations.policies:listeners"]
alice handshakes
alice subscribes to /expiry/gone
alice connects
bob handshakes
bob publishes 1 to /expiry/gone
on websocket:
    alice <- /expiry/gone {"data": 1}
1400 ms pass
bob handshakes
bob finds nobody on /expiry/gone

# A client that no longer reads loses its session, too
pins: 24
transports: long-polling
! max_message_size = 30000000
! max_interval = 2000
! write_timeout = 200
! max_request_size = 40000000
! max_queue_bytes = 60000000
! extension = ["tests.conversations.policies:listeners"]
alice handshakes
alice subscribes to /expiry/unread
alice connects
alice ~> /meta/connect
alice stops reading
bob handshakes
bob -> /expiry/unread {"data": <text of 6000000 characters>}
bob <- /expiry/unread ok
4000 ms pass
bob handshakes
bob finds nobody on /expiry/unread
alice drops

# A socket that no longer reads loses its session, too
pins: 24
transports: websocket
! max_message_size = 30000000
! max_interval = 2000
! write_timeout = 200
! max_request_size = 40000000
! max_queue_bytes = 60000000
! extension = ["tests.conversations.policies:listeners"]
alice handshakes
alice subscribes to /expiry/unread
alice connects
alice stops reading
bob speaks long-polling
bob handshakes
bob -> /expiry/unread {"data": <text of 6000000 characters>}
bob <- /expiry/unread ok
4000 ms pass
bob handshakes
bob finds nobody on /expiry/unread
alice drops

# The interval that the server advises is added to the session timeout
! interval = 1000
! max_interval = 500
alice handshakes
alice connects
900 ms pass
alice -> /meta/connect {"advice": {"timeout": 0}}
alice <- /meta/connect ok {"advice": {"reconnect": "retry", "interval": 1000, "timeout": 30000}}
