-- /meta/connect: when it is answered at once, when it is held, and what releases it.

transports: long-polling, websocket, callback-polling

# The first connect is never held
pins: 15
alice handshakes
alice -> /meta/connect
alice <- {"channel": "/meta/connect", "id": "2", "successful": true}

# The first connect is not held even if it asks for it
pins: 15
alice handshakes
alice -> /meta/connect {"advice": {"timeout": 10000}}
alice <- /meta/connect ok {"advice": {"reconnect": "retry", "interval": 0, "timeout": 30000}}

# A second connect is held until its timeout, and then answered without advice
pins: 8
! timeout = 600
alice handshakes
alice connects
alice ~> /meta/connect
alice is held for 100 ms
alice <~ {"channel": "/meta/connect", "id": "3", "successful": true}

# Every connect after the first is held
! timeout = 500
alice handshakes
alice connects
alice -> /meta/connect
alice <- /meta/connect ok
alice -> /meta/connect
alice <- /meta/connect ok
alice -> /meta/connect
alice <- /meta/connect ok

# A connect that asks for no hold is answered at once, with advice
alice handshakes
alice connects
alice -> /meta/connect {"advice": {"timeout": 0}}
alice <- /meta/connect ok {"advice": {"reconnect": "retry", "interval": 0, "timeout": 30000}}

# A connect may ask for a shorter hold for itself alone
alice handshakes
alice connects
alice ~> /meta/connect {"advice": {"timeout": 600}}
alice is held for 100 ms
-- The advice has the configured timeout, not the one that was asked for.
alice <~ /meta/connect ok {"advice": {"reconnect": "retry", "interval": 0, "timeout": 30000}}
alice ~> /meta/connect
alice is held for 800 ms

# A connect cannot ask for a longer hold than is configured
! timeout = 600
alice handshakes
alice connects
alice ~> /meta/connect {"advice": {"timeout": 60000}}
alice is held for 100 ms
alice <~ /meta/connect ok {"advice": {"reconnect": "retry", "interval": 0, "timeout": 600}}

# A negative timeout in a connect is ignored
! timeout = 600
alice handshakes
alice connects
alice ~> /meta/connect {"advice": {"timeout": -1}}
alice is held for 100 ms
alice <~ /meta/connect ok {"advice": {"reconnect": "retry", "interval": 0, "timeout": 600}}

# Any advice in a request is answered with complete advice
! timeout = 500
alice handshakes
alice connects
alice -> /meta/connect {"advice": {}}
alice <- /meta/connect ok {"advice": {"reconnect": "retry", "interval": 0, "timeout": 500}}
alice -> /meta/connect
alice <- /meta/connect ok

# An interval that the client announces is honoured, once
pins: 27
alice handshakes
alice connects
alice -> /meta/connect {"advice": {"interval": 500, "timeout": 0}}
alice <- /meta/connect ok {"advice": {"reconnect": "retry", "interval": 500, "timeout": 30000}}
alice -> /meta/connect {"advice": {"timeout": 0}}
alice <- /meta/connect ok {"advice": {"reconnect": "retry", "interval": 0, "timeout": 30000}}

# An interval that the client announces is limited to the timeout
! timeout = 600
alice handshakes
alice connects
alice -> /meta/connect {"advice": {"interval": 86400000, "timeout": 0}}
alice <- /meta/connect ok {"advice": {"reconnect": "retry", "interval": 600, "timeout": 600}}

# A connect whose advice is not an object is refused
alice handshakes
alice connects
alice -> /meta/connect {"advice": "retry"}
alice <- /meta/connect error "400::advice_invalid" {...}
-- The session continues, and values that are not numbers are ignored.
alice ~> /meta/connect {"advice": {"timeout": "soon", "interval": null}}
alice is held

# A connect of an unknown session is not held
alice handshakes
alice -> /meta/connect {"clientId": "0123456789abcdef0123456789abcdef"}
alice <- /meta/connect error "402::session_unknown" {"advice": {"reconnect": "handshake", "interval": 0, "timeout": 30000}}

# A client that keeps no cookie is told to handshake, but not at once
-- Otherwise it would come back for ever, as fast as it can.
transports: long-polling, callback-polling
alice -> /meta/connect {"clientId": "0123456789abcdef0123456789abcdef"}
alice <- /meta/connect error "402::session_unknown" {"advice": {"reconnect": "handshake", "interval": <1 to 60000>, "timeout": 30000}}

# The connection type of a connect is ignored
alice handshakes
alice -> /meta/connect {"connectionType": absent}
alice <- /meta/connect ok
alice ~> /meta/connect {"connectionType": "carrier-pigeon"}
alice is held

# The reply to a connect has the id of the request as a string, if there was one
alice handshakes
alice -> /meta/connect {"id": 17}
alice <- {"channel": "/meta/connect", "id": "17", "successful": true}
alice -> /meta/connect {"id": absent, "advice": {"timeout": 0}}
alice <- {"channel": "/meta/connect", "successful": true,
          "advice": {"reconnect": "retry", "interval": 0, "timeout": 30000}}

# A connect in a request with other messages is not held
pins: 16
alice handshakes
alice connects
alice -> /meta/connect
         /meta/subscribe {"subscription": "/connect/beside"}
alice <- /meta/connect ok
         /meta/subscribe ok
alice -> /meta/unsubscribe {"subscription": "/connect/beside"}
         /meta/connect
alice <- /meta/unsubscribe ok
         /meta/connect ok

# The first connect delivers what was published since the handshake
transports: long-polling, callback-polling
alice handshakes
alice subscribes to /connect/meanwhile
bob handshakes
bob publishes 1 to /connect/meanwhile
bob publishes 2 to /connect/meanwhile
alice -> /meta/connect
alice <- /connect/meanwhile {"data": 1}
         /connect/meanwhile {"data": 2}
         /meta/connect ok
alice ~> /meta/connect

# A later connect delivers what was published since the one before
transports: long-polling, callback-polling
alice handshakes
alice subscribes to /connect/later
alice connects
bob handshakes
bob publishes 1 to /connect/later
alice -> /meta/connect
alice <- /connect/later {"data": 1}
         /meta/connect ok
alice ~> /meta/connect

# A message releases a held connect
transports: long-polling, callback-polling
alice handshakes
alice subscribes to /connect/released
alice connects
alice ~> /meta/connect
bob handshakes
bob publishes "hello" to /connect/released
alice <~ /connect/released {"data": "hello"}
         /meta/connect ok

# A message is pushed through a socket while the connect stays held
transports: websocket
alice handshakes
alice subscribes to /connect/pushed
alice connects
alice ~> /meta/connect
bob handshakes
bob publishes "hello" to /connect/pushed
alice <- /connect/pushed {"data": "hello"}
alice is held

# A burst of messages arrives in one response
transports: long-polling, callback-polling
alice handshakes
alice subscribes to /connect/burst
alice connects
alice ~> /meta/connect
bob handshakes
bob -> /connect/burst {"data": 1}
       /connect/burst {"data": 2}
       /connect/burst {"data": 3}
bob <- /connect/burst ok
       /connect/burst ok
       /connect/burst ok
alice <~ /connect/burst {"data": 1}
         /connect/burst {"data": 2}
         /connect/burst {"data": 3}
         /meta/connect ok

# A client's other messages do not release its held connect
alice handshakes
alice connects
alice ~> /meta/connect
alice subscribes to /connect/alone
alice unsubscribes from /connect/alone
alice publishes 1 to /connect/alone
alice publishes 1 to /service/alone
alice is held

# A client's own message comes with the reply to its publish, and the connect stays held
transports: long-polling, websocket
alice handshakes
alice subscribes to /connect/own
alice connects
alice ~> /meta/connect
alice -> /connect/own {"data": "mine"}
alice <- /connect/own {"data": "mine"}
         /connect/own ok
alice is held

# A client's own message comes with the connect, if messages come with connects only
pins: 25
transports: callback-polling
alice handshakes
alice subscribes to /connect/own
alice connects
alice ~> /meta/connect
alice -> /connect/own {"data": "mine"}
alice <- /connect/own ok
alice <~ /connect/own {"data": "mine"}
         /meta/connect ok

# Messages can be restricted to replies to connects
pins: 25
! meta_connect_deliver_only = true
alice handshakes
alice subscribes to /connect/only
alice connects
alice ~> /meta/connect
alice -> /connect/only {"data": "mine"}
alice <- /connect/only ok
alice <~ /connect/only {"data": "mine"}
         /meta/connect ok

# Messages that are restricted to connects wait for the next one
pins: 26
! meta_connect_deliver_only = true
alice handshakes
alice subscribes to /connect/next
alice connects
alice ~> /meta/connect
bob handshakes
bob publishes 1 to /connect/next
alice <~ /connect/next {"data": 1}
         /meta/connect ok
bob publishes 2 to /connect/next
alice hears nothing
-- Other replies do not carry it either.
alice publishes "something" to /connect/elsewhere
alice subscribes to /connect/too
alice -> /meta/connect
alice <- /connect/next {"data": 2}
         /meta/connect ok

# A held connect that breaks loses no messages
transports: long-polling, callback-polling
alice handshakes
alice subscribes to /connect/dropped
alice connects
alice ~> /meta/connect
alice drops
bob handshakes
bob publishes 1 to /connect/dropped
bob publishes 2 to /connect/dropped
alice -> /meta/connect {"advice": {"timeout": 0}}
alice <- /connect/dropped {"data": 1}
         /connect/dropped {"data": 2}
         /meta/connect ok {"advice": {"reconnect": "retry", "interval": 0, "timeout": 30000}}

# The first connect over another transport is answered with advice
transports: long-polling
alice handshakes
alice connects
alice speaks callback-polling
alice -> /meta/connect
         /meta/subscribe {"subscription": "/connect/change"}
alice <- /meta/connect ok {"advice": {"reconnect": "retry", "interval": 0, "timeout": 30000}}
         /meta/subscribe ok
alice -> /meta/connect
         /meta/subscribe {"subscription": "/connect/change"}
alice <- /meta/connect ok
         /meta/subscribe ok

# A first connect over another transport than the handshake is answered with advice
transports: long-polling
alice handshakes
alice speaks callback-polling
alice -> /meta/connect
alice <- /meta/connect ok {"advice": {"reconnect": "retry", "interval": 0, "timeout": 30000}}

# A session can continue over another transport
transports: long-polling
alice handshakes
alice subscribes to /connect/other
alice connects
alice speaks websocket
alice -> /meta/connect {"advice": {"timeout": 0}}
alice <- /meta/connect ok {"advice": {"reconnect": "retry", "interval": 0, "timeout": 30000}}
alice ~> /meta/connect
bob handshakes
bob publishes "hello" to /connect/other
alice <- /connect/other {"data": "hello"}
