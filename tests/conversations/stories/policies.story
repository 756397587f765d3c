-- What applications add: a security policy, authorizers, services, extensions. Their code is in
-- policies.py beside this folder.

transports: long-polling, websocket, callback-polling

# A policy can deny a handshake
pins: 28
! extension = ["tests.conversations.policies:doorkeeper"]
alice -> /meta/handshake {"ext": {"name": "mallory"}}
alice <- /meta/handshake error "403::handshake_denied" {
    "advice": {"reconnect": "none", "interval": 0, "timeout": 30000}, "ext": {"reason": "you again"}}
alice -> /meta/connect {"clientId": absent}
alice <- /meta/connect error "402:send the clientId:client_id_missing" {"advice": <any>}

# A policy can advise a denied client
pins: 28
! extension = ["tests.conversations.policies:doorkeeper"]
alice -> /meta/handshake {"ext": {"name": "early"}}
alice <- /meta/handshake error "403::handshake_denied" {
    "advice": {"reconnect": "handshake", "interval": 7000, "timeout": 30000}}

# A policy can deny channels, subscriptions and publishes, each with advice and ext
pins: 28
! extension = ["tests.conversations.policies:doorkeeper"]
alice handshakes
alice -> /meta/subscribe {"subscription": "/guarded/create/me"}
alice <- /meta/subscribe error "403:denied_by_security_policy:create_denied" {
    "advice": {"reconnect": "retry", "interval": 9000, "timeout": 30000}, "ext": {"ask": "the doorkeeper"}}
alice -> /meta/subscribe {"subscription": "/guarded/subscribe/me"}
alice <- /meta/subscribe error "403:denied_by_security_policy:subscribe_denied" {
    "advice": {"reconnect": "retry", "interval": 9000, "timeout": 30000}, "ext": {"ask": "the doorkeeper"}}
alice -> /guarded/create/me {"data": 1}
alice <- /guarded/create/me error "403:denied_by_security_policy:channel_create_denied" {
    "advice": {"reconnect": "retry", "interval": 9000, "timeout": 30000}, "ext": {"ask": "the doorkeeper"}}
alice -> /guarded/publish/me {"data": 1}
alice <- /guarded/publish/me error "403:denied_by_security_policy:publish_denied" {
    "advice": {"reconnect": "retry", "interval": 9000, "timeout": 30000}, "ext": {"ask": "the doorkeeper"}}
-- What the policy does not mention is allowed.
alice subscribes to /guarded/free
alice publishes 1 to /guarded/other

# A denied channel in an array denies the whole subscription
! extension = ["tests.conversations.policies:doorkeeper"]
alice handshakes
alice -> /meta/subscribe {"subscription": ["/guarded/whole", "/guarded/subscribe/me"]}
alice <- /meta/subscribe error "403:denied_by_security_policy:subscribe_denied" {...}
alice -> /meta/unsubscribe {"subscription": "/guarded/whole"}
alice <- /meta/unsubscribe error "400::channel_missing"

# A channel with authorizers needs a grant of one of them
! extension = ["tests.conversations.policies:authorizers"]
alice handshakes
alice subscribes to /voted/read
alice -> /voted/read {"data": 1}
alice <- /voted/read error "403:denied_by_not_granting:publish_denied"
alice subscribes to /voted/both
alice -> /meta/subscribe {"subscription": "/voted/other"}
alice <- /meta/subscribe error "403:denied_by_not_granting:subscribe_denied"
bob handshakes
bob publishes 1 to /voted/both
on long-polling, callback-polling:
    alice -> /meta/connect
    alice <- /voted/both {"data": 1}
             /meta/connect ok
on websocket:
    alice <- /voted/both {"data": 1}

# The denial of one authorizer denies, with its reason in the error
! extension = ["tests.conversations.policies:authorizers"]
alice handshakes
alice -> /voted/shrine {"data": 1}
alice <- /voted/shrine error "403:this_is_a_shrine:publish_denied"

# A channel without authorizers is open
! extension = ["tests.conversations.policies:authorizers"]
alice handshakes
alice subscribes to /unvoted
alice publishes 1 to /unvoted/too

# A subscription to a pattern cannot bypass authorizers
! extension = ["tests.conversations.policies:authorizers"]
alice handshakes
alice -> /meta/subscribe {"subscription": "/**"}
alice <- /meta/subscribe error <text like 403:(denied_by_not_granting|this_is_a_shrine):subscribe_denied>
alice -> /meta/subscribe {"subscription": "/voted/*"}
alice <- /meta/subscribe error <text like 403:(denied_by_not_granting|this_is_a_shrine):subscribe_denied>

# A service can answer its caller, with the id of the call
! extension = ["tests.conversations.policies:services"]
alice handshakes
alice connects
on long-polling, websocket:
    alice -> /service/echo {"id": "call1", "data": {"x": 1}}
    alice <- {"channel": "/service/echo", "id": "call1", "data": {"x": 1}, "successful": true}
             {"channel": "/service/echo", "id": "call1", "successful": true}
    alice -> /service/fail {"id": "call2", "data": "no"}
    alice <- {"channel": "/service/fail", "id": "call2", "data": {"reason": "no"}, "successful": false}
             {"channel": "/service/fail", "id": "call2", "successful": true}
on callback-polling:
    alice ~> /meta/connect
    alice -> /service/echo {"id": "call1", "data": {"x": 1}}
    alice <- {"channel": "/service/echo", "id": "call1", "successful": true}
    alice <~ {"channel": "/service/echo", "id": "call1", "data": {"x": 1}, "successful": true}
             /meta/connect ok

# A service can publish to a channel
! extension = ["tests.conversations.policies:services"]
alice handshakes
alice subscribes to /policies/greetings
alice connects
alice ~> /meta/connect
bob handshakes
bob publishes "/policies/greetings" to /service/greet
on long-polling, callback-polling:
    alice <~ /policies/greetings {"data": "greetings from the server"}
             /meta/connect ok
on websocket:
    alice <- /policies/greetings {"data": "greetings from the server"}

# The server can disconnect a client
pins: 59
! extension = ["tests.conversations.policies:services"]
alice handshakes
alice connects
alice ~> /meta/connect
bob handshakes
bob publishes $alice to /service/end
on long-polling, callback-polling:
    alice <~ {"channel": "/meta/disconnect", "successful": true}
             /meta/connect ok {"advice": {"reconnect": "none", "interval": 0, "timeout": 30000}}
on websocket:
    -- The other way round, because cometd.js closes its socket when no connect is out.
    alice <- /meta/connect ok {"advice": {"reconnect": "none", "interval": 0, "timeout": 30000}}
             {"channel": "/meta/disconnect", "successful": true}
alice -> /meta/connect
alice <- /meta/connect error "402::session_unknown" {"advice": {"reconnect": "handshake", "interval": 0, "timeout": 30000}}

# The server can disconnect a client with ack
pins: 59
! extension = ["tests.conversations.policies:services"]
alice handshakes with ack
alice connects with ack
alice ~> /meta/connect {"ext": {"ack": 1}}
bob handshakes
bob publishes $alice to /service/end
on long-polling, callback-polling:
    alice <~ {"channel": "/meta/disconnect", "successful": true}
             /meta/connect ok {"advice": {"reconnect": "none", "interval": 0, "timeout": 30000}, "ext": {"ack": 2}}
on websocket:
    alice <- /meta/connect ok {"advice": {"reconnect": "none", "interval": 0, "timeout": 30000}, "ext": {"ack": 2}}
             {"channel": "/meta/disconnect", "successful": true}

# The server can change a session's timeout and interval, and the next connect says so
pins: 27
! extension = ["tests.conversations.policies:services"]
alice handshakes
alice connects
alice publishes {"timeout": 600, "interval": 40} to /service/pace
alice -> /meta/connect
alice <- /meta/connect ok {"advice": {"reconnect": "retry", "interval": 40, "timeout": 600}}
alice -> /meta/connect
alice <- /meta/connect ok

# The server can keep a session's own messages from it
pins: 39
! extension = ["tests.conversations.policies:services"]
alice handshakes
alice subscribes to /policies/hush
alice connects
alice publishes 1 to /service/hush
alice publishes "mine" to /policies/hush
bob handshakes
bob publishes "not mine" to /policies/hush
on long-polling, callback-polling:
    alice -> /meta/connect
    alice <- /policies/hush {"data": "not mine"}
             /meta/connect ok
on websocket:
    alice <- /policies/hush {"data": "not mine"}
    alice hears nothing

# A message for a client during its handshake comes with its first connect
pins: 48
! extension = ["tests.conversations.policies:welcome"]
alice handshakes
alice hears nothing
alice -> /meta/connect
alice <- /welcome {"data": "you are welcome"}
         /meta/connect ok

# A message for a client during its handshake can come with the reply
pins: 48
! extension = ["tests.conversations.policies:welcome"]
! allow_message_delivery_during_handshake = true
alice -> /meta/handshake
alice <- /meta/handshake ok {"clientId": new $alice, "x-messages": 1, ...}
         /welcome {"data": "you are welcome"}
alice connects

# A message that comes with the reply to a handshake can be acknowledged
pins: 48
! extension = ["tests.conversations.policies:welcome"]
! allow_message_delivery_during_handshake = true
alice -> /meta/handshake {"ext": {"ack": true}}
alice <- /meta/handshake ok {"clientId": new $alice, "x-messages": 1, "ext": {"ack": {"enabled": true, "batch": new $batch}}, ...}
         /welcome {"data": "you are welcome"}
alice -> /meta/connect {"ext": {"ack": $batch}}
alice <- /meta/connect ok {"ext": {"ack": 2}}
alice ~> /meta/connect {"ext": {"ack": 2}}
alice is held

# A message that came with the reply to a handshake comes again if that reply was lost
pins: 48
! extension = ["tests.conversations.policies:welcome"]
! allow_message_delivery_during_handshake = true
alice -> /meta/handshake {"ext": {"ack": true}}
alice <- /meta/handshake ok {"clientId": new $alice, "x-messages": 1, "ext": {"ack": {"enabled": true, "batch": 1}}, ...}
         /welcome {"data": "you are welcome"}
alice -> /meta/connect {"ext": {"ack": 0}}
alice <- /welcome {"data": "you are welcome"}
         /meta/connect ok {"ext": {"ack": 2}}

# An extension can drop a message, and its publisher gets an error
! extension = ["tests.conversations.policies:censorship"]
alice -> /meta/handshake
alice <- /meta/handshake ok {"clientId": new $alice, "ext": {"read": true}, ...}
alice -> /meta/subscribe {"subscription": "/policies/censored"}
alice <- /meta/subscribe ok {"ext": {"read": true}}
alice -> /policies/elsewhere {"data": "censored"}
alice <- /policies/elsewhere error "404::message_deleted" {"ext": {"read": true}}
-- Nothing passes an extension that fails.
alice -> /policies/elsewhere {"data": "crash"}
alice <- /policies/elsewhere error "500::server_fault" {"ext": {"read": true}}
bob -> /meta/handshake
bob <- /meta/handshake ok {"clientId": new $bob, ...}
bob -> /policies/censored {"data": "fine"}
bob <- /policies/censored ok {"ext": {"read": true}}
on long-polling, callback-polling:
    alice -> /meta/connect
    alice <- /policies/censored {"data": "fine", "approved": true}
             /meta/connect ok {"ext": {"read": true}}
on websocket:
    alice <- /policies/censored {"data": "fine", "approved": true}

# A handshake in which an extension fails is refused with advice to retry
! extension = ["tests.conversations.policies:censorship"]
alice -> /meta/handshake {"ext": {"name": "broken"}}
alice <- /meta/handshake error "500::server_fault" {"advice": {"reconnect": "handshake", "interval": <any>, "timeout": 30000}, ...}

# A reply to a handshake that may carry messages may also come without any
! extension = ["tests.conversations.policies:services"]
! allow_message_delivery_during_handshake = true
alice -> /meta/handshake
alice <- /meta/handshake ok {"clientId": new $alice, "x-messages": absent, ...}
alice connects
bob -> /meta/handshake {"ext": {"ack": true}}
bob <- /meta/handshake ok {"clientId": new $bob, "x-messages": absent, "ext": {"ack": {"enabled": true, "batch": new $batch}}, ...}
bob subscribes to /policies/none
bob -> /meta/connect {"ext": {"ack": $batch}}
bob <- /meta/connect ok {"ext": {"ack": new $next}}
alice publishes 1 to /policies/none
bob -> /meta/connect {"ext": {"ack": $next}}
bob <- /policies/none {"data": 1}
       /meta/connect ok {"ext": {"ack": <integer>}}

# A message that was delivered during a handshake can be acknowledged like any other
! extension = ["tests.conversations.policies:welcome"]
alice handshakes with ack
alice -> /meta/connect {"ext": {"ack": 0}}
alice <- /welcome {"data": "you are welcome"}
         /meta/connect ok {"ext": {"ack": 1}}
alice -> /meta/connect {"ext": {"ack": 0}, "advice": {"timeout": 0}}
alice <- /welcome {"data": "you are welcome"}
         /meta/connect ok {"ext": {"ack": 2}, "advice": <any>}
alice ~> /meta/connect {"ext": {"ack": 2}}
alice is held

# A message gets its reply even if an extension fails on the reply
! extension = ["tests.conversations.policies:censorship"]
alice -> /meta/handshake
alice <- /meta/handshake ok {"clientId": new $alice, ...}
alice -> /policies/burn {"data": 1, "ext": {"burn": true}}
alice <- /policies/burn ok
alice -> /policies/burn {"data": 1}
alice <- /policies/burn ok {"ext": {"read": true}}

# A service that fails affects its caller alone, and the error reveals nothing
! extension = ["tests.conversations.policies:services"]
alice handshakes
alice -> /policies/before {"data": 1}
         /service/crash {"data": "alice"}
         /policies/after {"data": 2}
alice <- /policies/before ok
         /service/crash error "500::server_fault"
         /policies/after ok
alice connects

# A message that an extension drops is refused and enters no queue
transports: long-polling, websocket
! extension = ["tests.conversations.policies:measuring"]
walter watches the dead letters
alice takes /s14 under {"session": "s14/1", "dispatcherActive": false}
bob handshakes
bob -> /s14 {"data": "much too long", "ext": {"delivery": {"persistent": true}}}
bob <- /s14 error "404::message_deleted"
-- Nor does a message pass on which the extension fails; the error reveals nothing.
bob -> /s14 {"data": "odd", "ext": {"delivery": {"persistent": true}}}
bob <- /s14 error "500::server_fault"
olga operates
olga asks "client/s14/1/?cbQueueNumMsgs" and hears "0"
bob publishes "just right" to /s14
olga asks "client/s14/1/?cbQueueNumMsgs" and hears "1"
olga sets "client/s14/1/?dispatcherActive" to "true"
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /s14 {"data": "just right", ...}
         /meta/connect ok {"ext": {"ack": 2}}
walter is held for 100 ms
alice ends the session
walter leaves while waiting
