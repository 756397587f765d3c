-- Several messages in one request: their order, and the order of replies and events.

transports: long-polling, websocket, callback-polling

# Replies come in the order of their messages
alice handshakes
alice -> /batches/a {"data": 1}
         /meta/subscribe {"subscription": "/batches/b"}
         /service/c {"data": 2}
         /meta/unsubscribe {"subscription": "/batches/b"}
         /batches/d {"data": 3}
alice <- /batches/a ok
         /meta/subscribe ok
         /service/c ok
         /meta/unsubscribe ok
         /batches/d ok

# A subscription takes effect for the next message of its batch
transports: long-polling, websocket
alice handshakes
alice -> /batches/first {"data": "before the subscription"}
         /meta/subscribe {"subscription": "/batches/first"}
         /batches/first {"data": "after it"}
         /meta/unsubscribe {"subscription": "/batches/first"}
         /batches/first {"data": "after the end of it"}
alice <- /batches/first {"data": "after it"}
         /batches/first ok
         /meta/subscribe ok
         /batches/first ok
         /meta/unsubscribe ok
         /batches/first ok

# A client's own publishes in a batch do not release its held connect
transports: long-polling
alice handshakes
alice subscribes to /batches/own
alice connects
alice ~> /meta/connect
alice -> /batches/own {"data": 1}
         /batches/own {"data": 2}
alice <- /batches/own {"data": 1}
         /batches/own {"data": 2}
         /batches/own ok
         /batches/own ok
alice is held

# Waiting messages come with the reply to any message of the client
transports: long-polling
alice handshakes
alice subscribes to /batches/waiting
alice connects
bob handshakes
bob publishes 1 to /batches/waiting
alice -> /batches/elsewhere {"data": 0}
alice <- /batches/waiting {"data": 1}
         /batches/elsewhere ok
bob publishes 2 to /batches/waiting
alice -> /meta/subscribe {"subscription": "/batches/more"}
alice <- /batches/waiting {"data": 2}
         /meta/subscribe ok
bob publishes 3 to /batches/waiting
alice -> /service/anything {"data": 0}
alice <- /batches/waiting {"data": 3}
         /service/anything ok
bob publishes 4 to /batches/waiting
alice -> /meta/unsubscribe {"subscription": "/batches/more"}
alice <- /batches/waiting {"data": 4}
         /meta/unsubscribe ok

# Messages do not come with the reply to a handshake
-- The second handshake comes from the same browser, but for another session.
transports: long-polling, callback-polling
alice handshakes
alice subscribes to /batches/handshake
bob handshakes
bob publishes 1 to /batches/handshake
alice -> /meta/handshake
alice <- /meta/handshake ok {"clientId": <text>, ...}
alice -> /meta/connect
alice <- /batches/handshake {"data": 1}
         /meta/connect ok

# After a disconnect in a batch, the session is unknown to the rest
pins: 21
! extension = ["tests.conversations.policies:listeners"]
alice handshakes
alice -> /meta/disconnect
         /meta/subscribe {"subscription": "/batches/gone"}
alice <- /meta/disconnect ok
         /meta/subscribe error "402::session_unknown"
bob handshakes
bob finds nobody on /batches/gone

# A disconnect between two publishes lets exactly one through
pins: 22
bob handshakes
bob subscribes to /batches/one
alice handshakes
alice -> /batches/one {"data": "one"}
         /meta/disconnect
         /batches/one {"data": "two"}
alice <- /batches/one ok
         /meta/disconnect ok
         /batches/one error "402::session_unknown"
on long-polling, callback-polling:
    bob -> /meta/connect
    bob <- /batches/one {"data": "one"}
           /meta/connect ok
on websocket:
    bob <- /batches/one {"data": "one"}

# A connect in a batch delivers what the batch published
transports: long-polling, callback-polling
alice handshakes
alice connects
alice -> /meta/subscribe {"subscription": "/batches/connect"}
         /batches/connect {"data": 1}
         /meta/connect
alice <- /batches/connect {"data": 1}
         /meta/subscribe ok
         /batches/connect ok
         /meta/connect ok

# A long batch gets all its replies
pins: 50
-- A JSONP client splits longer ones itself.
alice handshakes
alice -> /batches/long {"data": 1}
         /batches/long {"data": 2}
         /batches/long {"data": 3}
         /batches/long {"data": 4}
         /batches/long {"data": 5}
         /batches/long {"data": 6}
         /batches/long {"data": 7}
         /batches/long {"data": 8}
alice <- /batches/long ok
         /batches/long ok
         /batches/long ok
         /batches/long ok
         /batches/long ok
         /batches/long ok
         /batches/long ok
         /batches/long ok

# Only the first of two connects in one request succeeds
alice handshakes
alice connects
alice -> /meta/connect
         /meta/connect
alice <- /meta/connect ok
         /meta/connect error "409::connect_superseded"
alice ~> /meta/connect

# Two disconnects in one request end the session once
alice handshakes
alice -> /meta/disconnect
         /meta/disconnect
alice <- /meta/disconnect ok
         /meta/disconnect error "402::session_unknown"

# With messages restricted to connects, a batch that contains a connect delivers them
! meta_connect_deliver_only = true
alice handshakes
alice subscribes to /batches/only
alice connects
alice -> /batches/only {"data": 1}
         /meta/connect
alice <- /batches/only {"data": 1}
         /batches/only ok
         /meta/connect ok
