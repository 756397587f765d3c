-- Limits: exceeding one is an error with a code, and affects nobody else.

transports: long-polling, websocket, callback-polling

# A message that is too large is refused alone
pins: 46
! max_message_size = 1000
alice handshakes
alice -> /limits/large {"data": 1}
         /limits/large {"data": <text of 2000 characters>}
         /limits/large {"data": 3}
alice <- /limits/large ok
         /limits/large error "413:1000:message_too_large"
         /limits/large ok
alice connects

# A request that is too large is refused as a whole
transports: long-polling
! max_message_size = 1000
! max_request_size = 3000
alice handshakes
alice -> /limits/request {"data": <text of 4000 characters>}
alice <- 413 {"successful": false, "error": "413:max_request_size,3000:request_too_large"}
-- The client has to reconnect, and can.
alice connects

# A request that is too large after decompression is refused
transports: long-polling
! max_message_size = 1000
! max_request_size = 3000
alice -> /limits/gzip {"data": <text of 4000 characters>}
    Content-Encoding: gzip
alice <- 413 {"successful": false, "error": "413:inflated to more than 3000 bytes:request_too_large"}

# A batch of too many messages is refused as a whole
transports: long-polling, callback-polling
! max_batch = 3
alice handshakes
alice -> /limits/batch {"data": 1}
         /limits/batch {"data": 2}
         /limits/batch {"data": 3}
alice <- /limits/batch ok
         /limits/batch ok
         /limits/batch ok
alice -> /limits/batch {"data": 1}
         /limits/batch {"data": 2}
         /limits/batch {"data": 3}
         /limits/batch {"data": 4}
alice <- 413 {"successful": false, "error": "413:max_batch,3:request_too_large"}

# A message that is nested too deeply is refused alone
transports: long-polling, websocket, callback-polling
! max_depth = 8
alice handshakes
alice -> /limits/depth {"data": [[[[[[1]]]]]]}
alice <- /limits/depth ok
alice -> /limits/depth {"data": [[[[[[[1]]]]]]]}
         /limits/depth {"data": 1}
alice <- /limits/depth error "400::message_too_deep"
         /limits/depth ok
alice connects

# Channel names are limited in length and in segments
! max_channel_length = 20
! max_channel_segments = 3
! chat = false
alice handshakes
alice publishes 1 to /limits/345678901234
alice publishes 1 to /limits/b/c
alice -> /limits/3456789012345 {"data": 1}
alice <- /limits/3456789012345 error "405::channel_invalid"
alice -> /limits/b/c/d {"data": 1}
alice <- /limits/b/c/d error "405::channel_invalid"
alice subscribes to /limits/345678901234
alice -> /meta/subscribe {"subscription": "/limits/3456789012345"}
alice <- /meta/subscribe error "403::subscription_invalid"
alice -> /meta/subscribe {"subscription": "/limits/b/c/d"}
alice <- /meta/subscribe error "403::subscription_invalid"

# A full queue discards newer messages, and their publisher gets no error
transports: long-polling, callback-polling
! max_queue = 2
alice handshakes
alice subscribes to /limits/queue
alice connects
bob handshakes
bob publishes 1 to /limits/queue
bob publishes 2 to /limits/queue
bob publishes 3 to /limits/queue
alice -> /meta/connect
alice <- /limits/queue {"data": 1}
         /limits/queue {"data": 2}
         /meta/connect ok
bob publishes 4 to /limits/queue
alice -> /meta/connect
alice <- /limits/queue {"data": 4}
         /meta/connect ok

# A queue is limited in bytes, too
transports: long-polling, callback-polling
! max_queue_bytes = 3000
alice handshakes
alice subscribes to /limits/bytes
alice connects
bob handshakes
bob publishes <text of 2000 characters> to /limits/bytes
bob publishes <text of 2001 characters> to /limits/bytes
bob publishes "short" to /limits/bytes
alice -> /meta/connect
alice <- /limits/bytes {"data": <text of 2000 characters>}
         /limits/bytes {"data": "short"}
         /meta/connect ok

# A handshake beyond max_sessions is told to come back later
! max_sessions = 1
! max_interval = 600
alice handshakes
alice connects
alice ~> /meta/connect
bob -> /meta/handshake
bob <- /meta/handshake error "503::server_busy" {
    "clientId": absent, "version": absent, "supportedConnectionTypes": absent,
    "advice": {"reconnect": "handshake", "interval": <1 to 60000>, "timeout": 30000}}
alice drops
1200 ms pass
bob handshakes
bob disconnects
