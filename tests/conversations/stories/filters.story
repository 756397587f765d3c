-- Subscriptions that select messages, for any client.

transports: long-polling, websocket, callback-polling

# A subscriber receives only messages that its filter selects
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

# A session with local false does not get its own messages
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

# A filter does not select messages that it cannot evaluate, and they leave no dead letters
transports: long-polling, websocket
walter watches the dead letters
alice takes /filters/ten
alice -> /meta/subscribe {"subscription": "/filters/ten", "ext": {"delivery": {"filter": "LENGTH(data) <= 10"}}}
alice <- /meta/subscribe ok
bob handshakes
-- A length that fits, one that is too large, and a number, which has no length.
bob publishes "ten digits" to /filters/ten
bob publishes "even eleven" to /filters/ten
bob publishes 333 to /filters/ten
bob publishes "and ten" to /filters/ten
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /filters/ten {"data": "ten digits", ...}
         /filters/ten {"data": "and ten", ...}
         /meta/connect ok {"ext": {"ack": 2}}
walter is held
alice -> /meta/disconnect {"ext": {"ack": 2}}
alice <- /meta/disconnect ok
walter leaves while waiting

# A second subscribe replaces the filter and makes no second subscription
alice handshakes
alice -> 10 times /meta/subscribe {"subscription": "/filters/phones"}
alice <- 10 times /meta/subscribe ok
alice -> /meta/subscribe {"subscription": "/filters/phones", "ext": {"delivery": {"filter": "properties.phone LIKE '1XX%3'"}}}
alice <- /meta/subscribe ok
alice connects
bob handshakes
bob -> /filters/phones {"data": 1, "ext": {"delivery": {"properties": {"phone": "1203"}}}}
bob <- /filters/phones ok {...}
alice -> /meta/subscribe {"subscription": "/filters/phones", "ext": {"delivery": {"filter": "properties.phone LIKE '12%3'"}}}
alice <- /meta/subscribe ok
bob -> /filters/phones {"data": 2, "ext": {"delivery": {"properties": {"phone": "1203"}}}}
bob <- /filters/phones ok {...}
on long-polling, callback-polling:
    alice -> /meta/connect
    alice <- /filters/phones {"data": 2}
             /meta/connect ok
on websocket:
    alice <- /filters/phones {"data": 2}
-- One unsubscription ends it.
alice unsubscribes from /filters/phones
bob -> /filters/phones {"data": 3, "ext": {"delivery": {"properties": {"phone": "1203"}}}}
bob <- /filters/phones ok {...}
alice -> /meta/connect {"advice": {"timeout": 0}}
alice <- /meta/connect ok {"advice": <any>}
alice disconnects

# A filter may use a regular expression, or fields deep in the data
alice handshakes
alice -> /meta/subscribe {"subscription": "/filters/symbols", "ext": {"delivery": {"filter": "data.symbol MATCHES '^[A-Z]{3}$'"}}}
         /meta/subscribe {"subscription": "/filters/orders", "ext": {"delivery": {"filter": "data.order.total BETWEEN 10 AND 20"}}}
alice <- /meta/subscribe ok
         /meta/subscribe ok
alice connects
bob handshakes
bob -> /filters/symbols {"data": {"symbol": "ibm"}}
       /filters/symbols {"data": {"symbol": "SAP"}}
       /filters/orders {"data": {"order": {"total": 21}}}
       /filters/orders {"data": {"order": {"total": 20}}}
bob <- /filters/symbols ok
       /filters/symbols ok
       /filters/orders ok
       /filters/orders ok
on long-polling, callback-polling:
    alice -> /meta/connect
    alice <- /filters/symbols {"data": {"symbol": "SAP"}}
             /filters/orders {"data": {"order": {"total": 20}}}
             /meta/connect ok
on websocket:
    alice <- /filters/symbols {"data": {"symbol": "SAP"}}
             /filters/orders {"data": {"order": {"total": 20}}}
alice disconnects
