-- Publishing: which messages arrive, with which fields, and which are refused.

transports: long-polling, websocket, callback-polling

# A publish is answered, and its message is delivered
alice handshakes
alice subscribes to /publish/answered
bob handshakes
bob -> /publish/answered {"data": {"text": "hello"}}
bob <- {"channel": "/publish/answered", "id": "2", "successful": true}
on long-polling, callback-polling:
    alice -> /meta/connect
    alice <- {"channel": "/publish/answered", "data": {"text": "hello"}}
             /meta/connect ok
on websocket:
    alice <- {"channel": "/publish/answered", "data": {"text": "hello"}}

# A publish without subscribers succeeds
alice handshakes
alice publishes "anybody there?" to /publish/nobody

# Delivered messages carry neither the client id nor the id of the publisher
pins: 40
alice handshakes
alice subscribes to /publish/anonymous
bob handshakes
bob -> /publish/anonymous {"id": "mine", "data": 1}
bob <- /publish/anonymous ok
on long-polling, callback-polling:
    alice -> /meta/connect
    alice <- {"channel": "/publish/anonymous", "data": 1}
             /meta/connect ok
on websocket:
    alice <- {"channel": "/publish/anonymous", "data": 1}

# Unknown fields of a publish arrive; the protocol's own fields do not
-- Otherwise a publisher's advice could send a subscriber away.
alice handshakes
alice subscribes to /publish/fields
bob handshakes
bob -> /publish/fields {"data": 1, "order": 7, "timestamp": "Thu, 01 Jan 1970 00:00:00 GMT",
                        "priority": {"high": [true, null]}, "ext": {"mine": {"x": 1}},
                        "advice": {"reconnect": "none"}, "successful": false, "error": "500::made_up",
                        "subscription": "/other", "x-messages": 5, "connectionType": "websocket",
                        "supportedConnectionTypes": ["none"]}
bob <- /publish/fields ok {"subscription": "/other"}
on long-polling, callback-polling:
    alice -> /meta/connect
    alice <- /publish/fields {"data": 1, "order": 7, "timestamp": "Thu, 01 Jan 1970 00:00:00 GMT",
                              "priority": {"high": [true, null]}, "ext": {"mine": {"x": 1}}}
             /meta/connect ok
on websocket:
    alice <- /publish/fields {"data": 1, "order": 7, "timestamp": "Thu, 01 Jan 1970 00:00:00 GMT",
                              "priority": {"high": [true, null]}, "ext": {"mine": {"x": 1}}}

# A publisher cannot make its event look like one of the server's
-- The server says in ext.status that a request has failed, and in ext.ret where replies arrive.
alice handshakes
alice subscribes to /publish/forged
bob handshakes
bob -> /publish/forged {"data": {"error": "404:/x:no_responders"}, "error": "404:/x:no_responders", "sender": "client/carol/1",
                        "ext": {"status": "ERROR", "ret": "/ret/4kQx1nXyQ0uQmT7p2v3hZA", "mine": 1}}
bob <- /publish/forged ok
bob -> /publish/forged {"data": 2, "ext": {"status": "END"}}
bob <- /publish/forged ok
on long-polling, callback-polling:
    alice -> /meta/connect
    alice <- /publish/forged {"data": {"error": "404:/x:no_responders"}, "sender": "client/carol/1", "ext": {"mine": 1}}
             /publish/forged {"data": 2}
             /meta/connect ok
on websocket:
    alice <- /publish/forged {"data": {"error": "404:/x:no_responders"}, "sender": "client/carol/1", "ext": {"mine": 1}}
    alice <- /publish/forged {"data": 2}

# Fields of ext for the server's own extensions do not reach receivers
alice handshakes
alice subscribes to /publish/ext
bob handshakes
bob -> /publish/ext {"data": 1, "ext": {"ack": 5, "timesync": {"tc": 1, "l": 2, "o": 3}, "mine": 1}}
bob <- /publish/ext ok {...}
on long-polling, callback-polling:
    alice -> /meta/connect
    alice <- /publish/ext {"data": 1, "ext": {"mine": 1}}
             /meta/connect ok
on websocket:
    alice <- /publish/ext {"data": 1, "ext": {"mine": 1}}

# Falsy data arrives as it was sent
pins: 52
alice handshakes
alice subscribes to /publish/falsy
bob handshakes
bob -> /publish/falsy {"data": ""}
       /publish/falsy {"data": 0}
       /publish/falsy {"data": false}
       /publish/falsy {"data": null}
       /publish/falsy {"data": []}
       /publish/falsy {"data": {}}
bob <- /publish/falsy ok
       /publish/falsy ok
       /publish/falsy ok
       /publish/falsy ok
       /publish/falsy ok
       /publish/falsy ok
on long-polling, callback-polling:
    alice -> /meta/connect
    alice <- /publish/falsy {"data": ""}
             /publish/falsy {"data": 0}
             /publish/falsy {"data": false}
             /publish/falsy {"data": null}
             /publish/falsy {"data": []}
             /publish/falsy {"data": {}}
             /meta/connect ok
on websocket:
    alice <- /publish/falsy {"data": ""}
             /publish/falsy {"data": 0}
             /publish/falsy {"data": false}
             /publish/falsy {"data": null}
             /publish/falsy {"data": []}
             /publish/falsy {"data": {}}

# Numbers and characters arrive as they were sent
alice handshakes
alice subscribes to /publish/exact
bob handshakes
bob -> /publish/exact {"data": [1, 1.0, -0.5, 1e3, 9007199254740993, "ü€😀", "</script>", "\u2028", "\"\\/\b\u0000"]}
bob <- /publish/exact ok
on long-polling, callback-polling:
    alice -> /meta/connect
    alice <- /publish/exact {"data": [1, 1.0, -0.5, 1e3, 9007199254740993, "ü€😀", "</script>", "\u2028", "\"\\/\b\u0000"]}
             /meta/connect ok
on websocket:
    alice <- /publish/exact {"data": [1, 1.0, -0.5, 1e3, 9007199254740993, "ü€😀", "</script>", "\u2028", "\"\\/\b\u0000"]}

# A large message arrives whole
transports: long-polling, websocket
alice handshakes
alice subscribes to /publish/large
bob handshakes
bob -> /publish/large {"data": <text of 1000000 characters>}
bob <- /publish/large ok
on long-polling:
    alice -> /meta/connect
    alice <- /publish/large {"data": <text of 1000000 characters>}
             /meta/connect ok
on websocket:
    alice <- /publish/large {"data": <text of 1000000 characters>}

# A publish without data is refused
alice handshakes
alice subscribes to /publish/empty
alice -> /publish/empty
alice <- /publish/empty error "400::data_missing"
alice -> /publish/empty {"ext": {}, "order": 1}
alice <- /publish/empty error "400::data_missing"
alice -> /service/empty
alice <- /service/empty error "400::data_missing"
alice connects
alice ~> /meta/connect

# A publish to an illegal channel is refused
pins: 6
alice handshakes
alice -> /publish/50% {"data": 1}
alice <- /publish/50% error "405::channel_invalid"
alice -> {"channel": "publish", "id": "1", "clientId": $alice, "data": 1}
alice <- {"channel": "publish", "id": "1", "successful": false, "error": "405::channel_invalid"}
alice -> / {"data": 1}
alice <- / error "405::channel_invalid"
alice -> /publish//empty {"data": 1}
alice <- /publish//empty error "405::channel_invalid"
alice -> /publish/ελ {"data": 1}
alice <- /publish/ελ error "405::channel_invalid"
alice connects

# A publish to a pattern is refused
alice handshakes
alice -> /meta/subscribe {"subscription": ["/publish/wild/*", "/publish/wild/**"]}
alice <- /meta/subscribe ok
alice -> /publish/wild/* {"data": 1}
alice <- /publish/wild/* error "405::channel_invalid"
alice -> /publish/wild/** {"data": 1}
alice <- /publish/wild/** error "405::channel_invalid"
alice -> /** {"data": 1}
alice <- /** error "405::channel_invalid"
alice -> /publish/**/wild {"data": 1}
alice <- /publish/**/wild error "405::channel_invalid"
alice connects
alice ~> /meta/connect

# A channel name may have letters, digits, spaces and some punctuation
alice handshakes
alice -> {"channel": "/publish/Az09 !#$()+-.@_{~}", "id": "1", "clientId": $alice, "data": 1}
alice <- {"channel": "/publish/Az09 !#$()+-.@_{~}", "id": "1", "successful": true}

# A publish of an unknown session is refused without advice
alice -> /publish/unknown {"data": 1, "clientId": "0123456789abcdef0123456789abcdef"}
alice <- /publish/unknown error "402::session_unknown"

# Unknown meta channels are refused
alice handshakes
alice -> /meta/invented {"data": 1}
alice <- /meta/invented error "400:/meta/invented:not_supported"
alice -> /meta/connect/deeper {"data": 1}
alice <- /meta/connect/deeper error "400:/meta/connect/deeper:not_supported"

# Messages on service channels are not delivered to clients
alice handshakes
alice subscribes to /service/private
bob handshakes
bob publishes {"do": "something"} to /service/private
alice connects
alice ~> /meta/connect

# Publishers get their own messages if they subscribed
pins: 39
alice handshakes
alice subscribes to /publish/echo
alice connects
on long-polling, websocket:
    alice -> /publish/echo {"data": 1}
    alice <- /publish/echo {"data": 1}
             /publish/echo ok
on callback-polling:
    alice publishes 1 to /publish/echo
    alice -> /meta/connect
    alice <- /publish/echo {"data": 1}
             /meta/connect ok

# Publishers can be excluded from their own messages
pins: 39
! broadcast_to_publisher = false
alice handshakes
alice subscribes to /publish/silent
alice connects
alice publishes 1 to /publish/silent
bob handshakes
bob publishes 2 to /publish/silent
on long-polling, callback-polling:
    alice -> /meta/connect
    alice <- /publish/silent {"data": 2}
             /meta/connect ok
on websocket:
    alice <- /publish/silent {"data": 2}
    alice hears nothing

# Publishers can be excluded from their own messages on some channels
pins: 39
! channels = {"/publish/some/**": {"broadcast_to_publisher": false}}
alice handshakes
alice -> /meta/subscribe {"subscription": ["/publish/some/quiet", "/publish/loud"]}
alice <- /meta/subscribe ok
alice connects
alice publishes 1 to /publish/some/quiet
on long-polling, websocket:
    alice -> /publish/loud {"data": 2}
    alice <- /publish/loud {"data": 2}
             /publish/loud ok
on callback-polling:
    alice publishes 2 to /publish/loud
    alice -> /meta/connect
    alice <- /publish/loud {"data": 2}
             /meta/connect ok

# Every subscriber gets a message, in the order of publishing
alice handshakes
bob handshakes
carol handshakes
alice subscribes to /publish/order
bob subscribes to /publish/order
carol -> /publish/order {"data": 1}
         /publish/order {"data": 2}
carol <- /publish/order ok
         /publish/order ok
carol publishes 3 to /publish/order
on long-polling, callback-polling:
    alice -> /meta/connect
    alice <- /publish/order {"data": 1}
             /publish/order {"data": 2}
             /publish/order {"data": 3}
             /meta/connect ok
    bob -> /meta/connect
    bob <- /publish/order {"data": 1}
           /publish/order {"data": 2}
           /publish/order {"data": 3}
           /meta/connect ok
on websocket:
    alice <- /publish/order {"data": 1}
             /publish/order {"data": 2}
             /publish/order {"data": 3}
    bob <- /publish/order {"data": 1}
           /publish/order {"data": 2}
           /publish/order {"data": 3}

# A message published over one transport arrives over the others
transports: long-polling
alice handshakes
alice subscribes to /publish/across
bob speaks websocket
bob handshakes
bob subscribes to /publish/across
carol speaks callback-polling
carol handshakes
carol subscribes to /publish/across
bob publishes 1 to /publish/other
carol publishes "from carol" to /publish/across
bob <- /publish/across {"data": "from carol"}
alice -> /meta/connect
alice <- /publish/across {"data": "from carol"}
         /meta/connect ok
carol -> /meta/connect
carol <- /publish/across {"data": "from carol"}
         /meta/connect ok
