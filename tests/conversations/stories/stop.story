-- The server stops in good order. Clients return by themselves to the server that takes its place.

transports: long-polling, websocket, callback-polling

# A held connect is answered with advice to come back, and its connection ends
transports: long-polling, callback-polling
alice handshakes
alice connects
alice ~> /meta/connect
the server stops
alice <~ /meta/connect ok {"advice": {"reconnect": "retry", "interval": 0, "timeout": 30000}}

# Over a socket, a held connect is answered before the socket is closed
transports: websocket
alice handshakes
alice connects
alice ~> /meta/connect
the server stops
alice <~ /meta/connect ok {"advice": {"reconnect": "retry", "interval": 0, "timeout": 30000}}
alice <- closed 1001

# A socket without a held connect is closed
transports: websocket
alice handshakes
alice connects
the server stops
alice <- closed 1001

# A held connect with ack is answered with its batch
transports: long-polling, callback-polling
alice handshakes with ack
alice connects with ack
alice ~> /meta/connect {"ext": {"ack": 1}}
the server stops
alice <~ /meta/connect ok {"ext": {"ack": 2}, "advice": {"reconnect": "retry", "interval": 0, "timeout": 30000}}
