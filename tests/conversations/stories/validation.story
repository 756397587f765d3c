-- The checks of every message, and their order.

transports: long-polling, websocket, callback-polling

# A message without a channel is answered, and the connection survives
pins: 43
alice handshakes
alice -> {"id": "7", "clientId": $alice, "data": 1}
alice <- {"id": "7", "successful": false, "error": "400::channel_missing"}
alice connects
alice -> {}
alice <- {"successful": false, "error": "400::channel_missing"}
alice ~> /meta/connect

# An id that is not printable ASCII is refused
pins: 4
alice handshakes
alice -> /validation/id {"id": "two\nlines", "data": 1}
alice <- {"channel": "/validation/id", "id": "two\nlines", "successful": false, "error": "405::message_id_invalid"}
alice -> /validation/id {"id": "", "data": 1}
alice <- {"channel": "/validation/id", "id": "", "successful": false, "error": "405::message_id_invalid"}
alice -> /validation/id {"id": 1.5, "data": 1}
alice <- {"channel": "/validation/id", "id": "1.5", "successful": false, "error": "405::message_id_invalid"}
alice -> /validation/id {"id": -1, "data": 1}
alice <- {"channel": "/validation/id", "id": "-1", "successful": false, "error": "405::message_id_invalid"}
alice -> /validation/id {"id": {"a": 1}, "data": 1}
alice <- {"channel": "/validation/id", "successful": false, "error": "405::message_id_invalid", ...}
alice -> /validation/id {"id": "é", "data": 1}
alice <- {"channel": "/validation/id", "id": "é", "successful": false, "error": "405::message_id_invalid"}

# Ids are echoed as strings
alice handshakes
alice -> /validation/ids {"id": 5, "data": 1}
         /validation/ids {"id": "6", "data": 1}
         /validation/ids {"id": "aB7", "data": 1}
         /validation/ids {"id": absent, "data": 1}
alice <- {"channel": "/validation/ids", "id": "5", "successful": true}
         {"channel": "/validation/ids", "id": "6", "successful": true}
         {"channel": "/validation/ids", "id": "aB7", "successful": true}
         {"channel": "/validation/ids", "successful": true}

# An id may be any printable ASCII, such as a UUID, and comes back unchanged
alice -> /meta/handshake {"id": "0b5a4f1e-6f0c-4d5e-9a53-0d8a4f8f6f10"}
alice <- /meta/handshake ok {"id": "0b5a4f1e-6f0c-4d5e-9a53-0d8a4f8f6f10", "clientId": new $alice, ...}
alice -> /validation/uuid {"id": "c1:\"</script>\\ %0a+&#~", "data": 1}
         /meta/subscribe {"subscription": "/validation/uuid", "id": " {}[],'/*"}
alice <- {"channel": "/validation/uuid", "id": "c1:\"</script>\\ %0a+&#~", "successful": true}
         /meta/subscribe ok {"id": " {}[],'/*"}
alice -> /meta/connect {"id": "urn:uuid:1"}
alice <- /meta/connect ok {"id": "urn:uuid:1", ...}
alice ~> /meta/connect {"id": "a.b"}
bob handshakes
bob -> /validation/uuid {"id": "b-1", "data": 2}
bob <- /validation/uuid ok {"id": "b-1"}
on long-polling, callback-polling:
    alice <~ /validation/uuid {"data": 2}
             /meta/connect ok {"id": "a.b"}
on websocket:
    alice <~ /validation/uuid {"data": 2}

# A handshake is validated like any other message
pins: 4
alice -> /meta/handshake {"id": "ä-b"}
alice <- {"channel": "/meta/handshake", "id": "ä-b", "successful": false, "error": "405::message_id_invalid", ...}

# A message whose channel is not a string is refused
alice handshakes
alice -> {"channel": 5, "id": "1", "clientId": $alice, "data": 1}
alice <- {"id": "1", "successful": false, "error": <text like 40[05]::channel_(missing|invalid)>, ...}
alice -> {"channel": null, "id": "2", "clientId": $alice, "data": 1}
alice <- {"id": "2", "successful": false, "error": <text like 40[05]::channel_(missing|invalid)>, ...}
alice -> {"channel": ["/a"], "id": "3", "clientId": $alice, "data": 1}
alice <- {"id": "3", "successful": false, "error": <text like 40[05]::channel_(missing|invalid)>, ...}

# The form of a message is checked before its session
alice -> {}
alice <- {"successful": false, "error": "400::channel_missing"}
alice -> {"channel": "no slash"}
alice <- {"channel": "no slash", "successful": false, "error": "405::channel_invalid"}
alice -> /meta/connect {"id": "a\tb"}
alice <- {"channel": "/meta/connect", "id": "a\tb", "successful": false, "error": "405::message_id_invalid", ...}

# The session of a message is checked before its content
alice -> /validation/nobody
alice <- /validation/nobody error "402:send the clientId:client_id_missing"
alice -> /meta/subscribe
alice <- /meta/subscribe error "402:send the clientId:client_id_missing"
alice -> /meta/invented
alice <- /meta/invented error "402:send the clientId:client_id_missing"

# An invalid message in a batch does not affect the others
alice handshakes
alice -> /meta/subscribe {"subscription": "/validation/batch"}
         {"id": "nochannel"}
         /validation/b%tch {"data": 1}
         /validation/batch {"data": 2, "id": "bad ıd"}
         /meta/unsubscribe {"subscription": "/validation/batch"}
alice <- /meta/subscribe ok
         {"id": "nochannel", "successful": false, "error": "400::channel_missing"}
         /validation/b%tch error "405::channel_invalid"
         /validation/batch error "405::message_id_invalid"
         /meta/unsubscribe ok

# A message whose ext is not an object is refused
alice handshakes
alice -> /validation/ext {"data": 1, "ext": "text"}
         /meta/subscribe {"subscription": "/validation/ext", "ext": [1]}
         /validation/ext {"data": 2}
alice <- /validation/ext error "400::ext_invalid" {...}
         /meta/subscribe error "400::ext_invalid" {...}
         /validation/ext ok

# A client id that is not a string is unknown
alice handshakes
alice -> /validation/client {"clientId": 5, "data": 1}
alice <- /validation/client error "402::session_unknown"
alice -> /validation/client {"clientId": [$alice], "data": 1}
alice <- /validation/client error "402::session_unknown"
alice -> /validation/client {"clientId": null, "data": 1}
alice <- /validation/client error "402:send the clientId:client_id_missing"

# A request whose first message has no client id belongs to no session
transports: long-polling, callback-polling
alice handshakes
alice -> /validation/first {"clientId": absent, "data": 1}
         /validation/first {"data": 2}
alice <- /validation/first error "402:send the clientId:client_id_missing"
         /validation/first error "402::session_unknown"

# A first message that is refused still determines the session of its request
alice handshakes
alice -> {"id": "nochannel", "clientId": $alice}
         /validation/second {"data": 2}
alice <- {"id": "nochannel", "successful": false, "error": "400::channel_missing"}
         /validation/second ok

# A message with half a surrogate pair is refused alone
transports: long-polling, websocket
-- A text that was cut inside an emoji, as JavaScript writes it.
alice handshakes
alice subscribes to /validation/halves
alice -> body: [{"channel": "/validation/halves", "id": "1", "clientId": "$alice", "data": "good"}, {"channel": "/validation/halves", "id": "2", "clientId": "$alice", "data": {"cut": "smile \ud83d"}}]
alice <- /validation/halves {"data": "good"}
         {"channel": "/validation/halves", "id": "1", "successful": true}
         {"channel": "/validation/halves", "id": "2", "successful": false, "error": "400::text_invalid"}

# A message with a number that no double can hold is refused
alice handshakes
alice -> body: [{"channel": "/validation/numbers", "id": "1", "clientId": "$alice", "data": [1e400]}]
alice <- {"channel": "/validation/numbers", "id": "1", "successful": false, "error": "400::number_invalid"}
alice -> /validation/numbers {"data": 1}
alice <- /validation/numbers ok

# An integer of more than 64 bits arrives as the double that browsers read
transports: long-polling, websocket
alice handshakes
alice subscribes to /validation/integers
alice -> /validation/integers {"data": 100000000000000000001}
alice <- /validation/integers {"data": 1e20}
         /validation/integers ok
