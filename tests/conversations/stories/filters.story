-- Subscriptions that select messages, for any client.

transports: long-polling, websocket, callback-polling

# A subscriber receives what its filter describes
alice handshakes
alice -> /meta/subscribe {"subscription": "/filters/trades", "ext": {"delivery": {"filter": "data.price > 100 AND data.symbol LIKE 'I%'"}}}
alice <- /meta/subscribe ok {"subscription": "/filters/trades"}
alice connects
bob handshakes
bob publishes {"price": 99, "symbol": "IBM"} to /filters/trades
bob publishes {"price": 101, "symbol": "SAP"} to /filters/trades
bob publishes {"price": 102, "symbol": "IBM"} to /filters/trades
on long-polling, callback-polling:
    alice -> /meta/connect
    alice <- /filters/trades {"data": {"price": 102, "symbol": "IBM"}}
             /meta/connect ok
on websocket:
    alice <- /filters/trades {"data": {"price": 102, "symbol": "IBM"}}
alice disconnects

# Own messages stay away from who wants others' only
alice handshakes
alice -> /meta/subscribe {"subscription": "/filters/room", "ext": {"delivery": {"local": false}}}
alice <- /meta/subscribe ok {"subscription": "/filters/room"}
alice connects
bob handshakes
alice publishes "mine" to /filters/room
bob publishes "yours" to /filters/room
on long-polling, callback-polling:
    alice -> /meta/connect
    alice <- /filters/room {"data": "yours"}
             /meta/connect ok
on websocket:
    alice <- /filters/room {"data": "yours"}
alice disconnects
