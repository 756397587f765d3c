-- /meta/subscribe and /meta/unsubscribe.

transports: long-polling, websocket, callback-polling

# The reply to a subscribe or unsubscribe echoes the channel
alice handshakes
alice -> /meta/subscribe {"subscription": "/subscribe/echo"}
alice <- {"channel": "/meta/subscribe", "id": "2", "successful": true, "subscription": "/subscribe/echo"}
alice -> /meta/unsubscribe {"subscription": "/subscribe/echo"}
alice <- {"channel": "/meta/unsubscribe", "id": "3", "successful": true, "subscription": "/subscribe/echo"}

# A subscription to many channels gets one reply, which echoes the array
pins: 17, 18
alice handshakes
alice -> /meta/subscribe {"subscription": ["/subscribe/one", "/subscribe/two"]}
alice <- {"channel": "/meta/subscribe", "id": "2", "successful": true, "subscription": ["/subscribe/one", "/subscribe/two"]}
alice connects
bob handshakes
bob -> /subscribe/one {"data": 1}
       /subscribe/two {"data": 2}
bob <- /subscribe/one ok
       /subscribe/two ok
on long-polling, callback-polling:
    alice -> /meta/connect
    alice <- /subscribe/one {"data": 1}
             /subscribe/two {"data": 2}
             /meta/connect ok
on websocket:
    alice <- /subscribe/one {"data": 1}
             /subscribe/two {"data": 2}
alice -> /meta/unsubscribe {"subscription": ["/subscribe/one", "/subscribe/two"]}
alice <- {"channel": "/meta/unsubscribe", "id": <text>, "successful": true, "subscription": ["/subscribe/one", "/subscribe/two"]}
bob publishes 3 to /subscribe/one
alice ~> /meta/connect

# An array of one channel is echoed as an array
alice handshakes
alice -> /meta/subscribe {"subscription": ["/subscribe/single"]}
alice <- /meta/subscribe ok {"subscription": ["/subscribe/single"]}

# A channel may be subscribed to twice, and its messages arrive once
alice handshakes
alice subscribes to /subscribe/twice
alice -> /meta/subscribe {"subscription": ["/subscribe/twice", "/subscribe/twice"]}
alice <- /meta/subscribe ok
alice connects
alice ~> /meta/connect
bob handshakes
bob publishes 1 to /subscribe/twice
on long-polling, callback-polling:
    alice <~ /subscribe/twice {"data": 1}
             /meta/connect ok
on websocket:
    alice <- /subscribe/twice {"data": 1}
alice unsubscribes from /subscribe/twice
bob publishes 2 to /subscribe/twice
alice -> /meta/connect {"advice": {"timeout": 0}}
alice <- /meta/connect ok {"advice": <any>}

# Unsubscribing from a channel that only others subscribed to fails, as from one that nobody did
alice handshakes
alice subscribes to /subscribe/others
bob handshakes
bob -> /meta/unsubscribe {"subscription": "/subscribe/others"}
bob <- /meta/unsubscribe error "400::channel_missing"
-- It did not touch Alice's subscription.
bob publishes 1 to /subscribe/others
on long-polling, callback-polling:
    alice -> /meta/connect
    alice <- /subscribe/others {"data": 1}
             /meta/connect ok
on websocket:
    alice <- /subscribe/others {"data": 1}

# Unsubscribing from a channel that nobody subscribed to fails
alice handshakes
alice -> /meta/unsubscribe {"subscription": "/subscribe/nobody"}
alice <- /meta/unsubscribe error "400::channel_missing"

# Unsubscribing from an array fails as a whole if the session did not subscribe to one of its channels
alice handshakes
alice subscribes to /subscribe/whole
alice -> /meta/unsubscribe {"subscription": ["/subscribe/whole", "/subscribe/hole"]}
alice <- /meta/unsubscribe error "400::channel_missing"
bob handshakes
bob publishes "still there" to /subscribe/whole
on long-polling, callback-polling:
    alice -> /meta/connect
    alice <- /subscribe/whole {"data": "still there"}
             /meta/connect ok
on websocket:
    alice <- /subscribe/whole {"data": "still there"}

# A subscription with illegal characters fails
pins: 5
alice handshakes
alice -> /meta/subscribe {"subscription": "/subscribe/50%"}
alice <- /meta/subscribe error "403::subscription_invalid"
alice -> /meta/subscribe {"subscription": "/subscribe/a=b"}
alice <- /meta/subscribe error "403::subscription_invalid"
alice -> /meta/subscribe {"subscription": "/subscribe/Ελλάδα"}
alice <- /meta/subscribe error "403::subscription_invalid"
alice -> /meta/subscribe {"subscription": "subscribe"}
alice <- /meta/subscribe error "403::subscription_invalid"
alice -> /meta/subscribe {"subscription": "/"}
alice <- /meta/subscribe error "403::subscription_invalid"
alice -> /meta/subscribe {"subscription": ""}
alice <- /meta/subscribe error "403::subscription_invalid"

# An unsubscription with illegal characters fails
pins: 5
alice handshakes
alice -> /meta/unsubscribe {"subscription": "/subscribe/50%"}
alice <- /meta/unsubscribe error "403::subscription_invalid"
alice -> /meta/unsubscribe {"subscription": ["/subscribe/a", "/subscribe/<b>"]}
alice <- /meta/unsubscribe error "403::subscription_invalid"

# A subscription with an empty segment or a wildcard in the middle fails
alice handshakes
alice -> /meta/subscribe {"subscription": "/subscribe//empty"}
alice <- /meta/subscribe error "403::subscription_invalid"
alice -> /meta/subscribe {"subscription": "/subscribe/*/middle"}
alice <- /meta/subscribe error "403::subscription_invalid"
alice -> /meta/subscribe {"subscription": "/subscribe/**/middle"}
alice <- /meta/subscribe error "403::subscription_invalid"
-- A star inside a segment is an ordinary character.
alice -> /meta/subscribe {"subscription": "/subscribe/st*r"}
alice <- /meta/subscribe ok

# A subscription to an array with an invalid channel subscribes to nothing
alice handshakes
alice -> /meta/subscribe {"subscription": ["/subscribe/good", "/subscribe/b%d", "/subscribe/fine"]}
alice <- /meta/subscribe error "403::subscription_invalid"
alice -> /meta/unsubscribe {"subscription": "/subscribe/good"}
alice <- /meta/unsubscribe error "400::channel_missing"

# A subscription to an array with a meta channel subscribes to nothing
alice handshakes
alice -> /meta/subscribe {"subscription": ["/subscribe/fair", "/meta/connect"]}
alice <- /meta/subscribe error "403:denied_by_security_policy:subscribe_denied"
alice -> /meta/unsubscribe {"subscription": "/subscribe/fair"}
alice <- /meta/unsubscribe error "400::channel_missing"

# A subscribe without a subscription fails
alice handshakes
alice -> /meta/subscribe
alice <- /meta/subscribe error "403::subscription_missing"
alice -> /meta/subscribe {"subscription": null}
alice <- {"channel": "/meta/subscribe", "id": <text>, "successful": false, "error": "403::subscription_missing", ...}
alice -> /meta/unsubscribe
alice <- /meta/unsubscribe error "403::subscription_missing"
alice -> /meta/subscribe {"subscription": []}
alice <- /meta/subscribe error <text like 403::subscription_(missing|invalid)>

# A subscription that is neither a string nor an array of strings fails
alice handshakes
alice -> /meta/subscribe {"subscription": 5}
alice <- /meta/subscribe error "403::subscription_invalid" {...}
alice -> /meta/subscribe {"subscription": {"channel": "/a"}}
alice <- /meta/subscribe error "403::subscription_invalid" {...}
alice -> /meta/subscribe {"subscription": ["/subscribe/a", ["/subscribe/b"]]}
alice <- /meta/subscribe error "403::subscription_invalid" {...}
alice -> /meta/subscribe {"subscription": ["/subscribe/a", null]}
alice <- /meta/subscribe error "403::subscription_invalid" {...}

# Meta channels cannot be subscribed to
pins: 44
alice handshakes
alice -> /meta/subscribe {"subscription": "/meta/connect"}
alice <- /meta/subscribe error "403:denied_by_security_policy:subscribe_denied"
alice -> /meta/subscribe {"subscription": "/meta/handshake"}
alice <- /meta/subscribe error "403:denied_by_security_policy:subscribe_denied"
alice -> /meta/subscribe {"subscription": "/meta/invented"}
alice <- /meta/subscribe error "403:denied_by_security_policy:create_denied"
alice -> /meta/subscribe {"subscription": "/meta/*"}
alice <- /meta/subscribe error "403:denied_by_security_policy:create_denied"
alice -> /meta/subscribe {"subscription": "/meta/**"}
alice <- /meta/subscribe error "403:denied_by_security_policy:create_denied"

# Service channels can be subscribed to, without effect
pins: 44
alice handshakes
alice subscribes to /service/anything
alice unsubscribes from /service/anything
alice -> /meta/subscribe {"subscription": ["/service/*", "/service/**"]}
alice <- /meta/subscribe ok
bob handshakes
bob publishes 1 to /service/anything
alice connects
alice ~> /meta/connect

# Channels whose names only begin like meta or service channels are ordinary
alice handshakes
alice -> /meta/subscribe {"subscription": ["/metaphor", "/services/x", "/meta", "/service"]}
alice <- /meta/subscribe ok
bob handshakes
bob -> /metaphor {"data": 1}
       /services/x {"data": 2}
       /meta {"data": 3}
       /service {"data": 4}
bob <- /metaphor ok
       /services/x ok
       /meta ok
       /service ok
on long-polling, callback-polling:
    alice -> /meta/connect
    alice <- /metaphor {"data": 1}
             /services/x {"data": 2}
             /meta {"data": 3}
             /service {"data": 4}
             /meta/connect ok
on websocket:
    alice <- /metaphor {"data": 1}
             /services/x {"data": 2}
             /meta {"data": 3}
             /service {"data": 4}

# One star matches exactly one segment
alice handshakes
alice subscribes to /wild/one/*
bob handshakes
bob -> /wild/one {"data": 0}
       /wild/one/a {"data": 1}
       /wild/one/a/b {"data": 2}
       /wild/two/a {"data": 3}
bob <- /wild/one ok
       /wild/one/a ok
       /wild/one/a/b ok
       /wild/two/a ok
on long-polling, callback-polling:
    alice -> /meta/connect
    alice <- /wild/one/a {"data": 1}
             /meta/connect ok
on websocket:
    alice <- /wild/one/a {"data": 1}
    alice hears nothing

# Two stars match one or more segments
alice handshakes
alice subscribes to /wild/many/**
bob handshakes
bob -> /wild/many {"data": 0}
       /wild/many/a {"data": 1}
       /wild/many/a/b/c {"data": 2}
       /wild {"data": 3}
bob <- /wild/many ok
       /wild/many/a ok
       /wild/many/a/b/c ok
       /wild ok
on long-polling, callback-polling:
    alice -> /meta/connect
    alice <- /wild/many/a {"data": 1}
             /wild/many/a/b/c {"data": 2}
             /meta/connect ok
on websocket:
    alice <- /wild/many/a {"data": 1}
             /wild/many/a/b/c {"data": 2}
    alice hears nothing

# A message that matches several subscriptions is delivered once
alice handshakes
alice -> /meta/subscribe {"subscription": ["/wild/once/a", "/wild/once/*", "/wild/once/**", "/wild/**"]}
alice <- /meta/subscribe ok
bob handshakes
bob publishes 1 to /wild/once/a
on long-polling, callback-polling:
    alice -> /meta/connect
    alice <- /wild/once/a {"data": 1}
             /meta/connect ok
on websocket:
    alice <- /wild/once/a {"data": 1}
    alice hears nothing
-- The other subscriptions remain.
alice unsubscribes from /wild/once/a
bob publishes 2 to /wild/once/a
on long-polling, callback-polling:
    alice -> /meta/connect
    alice <- /wild/once/a {"data": 2}
             /meta/connect ok
on websocket:
    alice <- /wild/once/a {"data": 2}
    alice hears nothing

# A subscriber to everything gets no meta and no service messages
pins: 45
alice handshakes
alice -> /meta/subscribe {"subscription": ["/**", "/*"]}
alice <- /meta/subscribe ok
bob handshakes
bob subscribes to /everything
bob connects
bob publishes 1 to /service/secret
bob -> /meta/invented {"data": 2}
bob <- /meta/invented error "400:/meta/invented:not_supported"
bob publishes 3 to /seen/by/alice
on long-polling, callback-polling:
    alice -> /meta/connect
    alice <- /seen/by/alice {"data": 3}
             /meta/connect ok
on websocket:
    alice <- /seen/by/alice {"data": 3}
    alice hears nothing
alice disconnects

# A slash at the end of a subscription is ignored
alice handshakes
alice -> /meta/subscribe {"subscription": "/subscribe/slash/"}
alice <- /meta/subscribe ok
bob handshakes
bob publishes 1 to /subscribe/slash
on long-polling, callback-polling:
    alice -> /meta/connect
    alice <- /subscribe/slash {"data": 1}
             /meta/connect ok
on websocket:
    alice <- /subscribe/slash {"data": 1}

# A subscribe or unsubscribe of an unknown session is refused without advice
alice -> /meta/subscribe {"subscription": "/subscribe/unknown", "clientId": "0123456789abcdef0123456789abcdef"}
alice <- /meta/subscribe error "402::session_unknown"
alice -> /meta/unsubscribe {"subscription": ["/subscribe/unknown"], "clientId": "0123456789abcdef0123456789abcdef"}
alice <- /meta/unsubscribe error "402::session_unknown"

# The number of a session's subscriptions is limited
! max_subscriptions = 2
alice handshakes
alice subscribes to /subscribe/limit/1
alice -> /meta/subscribe {"subscription": ["/subscribe/limit/2", "/subscribe/limit/3"]}
alice <- /meta/subscribe error "413:2:subscriptions_exceeded"
alice subscribes to /subscribe/limit/2
-- A repeated subscription does not count again.
alice subscribes to /subscribe/limit/1
alice -> /meta/subscribe {"subscription": "/subscribe/limit/3"}
alice <- /meta/subscribe error "413:2:subscriptions_exceeded"
alice unsubscribes from /subscribe/limit/2
alice subscribes to /subscribe/limit/3

# Unsubscribing from a pattern leaves the other subscriptions that match
alice handshakes
alice -> /meta/subscribe {"subscription": ["/subscribe/left/a", "/subscribe/left/*"]}
alice <- /meta/subscribe ok
alice unsubscribes from /subscribe/left/*
bob handshakes
bob -> /subscribe/left/a {"data": 1}
       /subscribe/left/b {"data": 2}
bob <- /subscribe/left/a ok
       /subscribe/left/b ok
on long-polling, callback-polling:
    alice -> /meta/connect
    alice <- /subscribe/left/a {"data": 1}
             /meta/connect ok
on websocket:
    alice <- /subscribe/left/a {"data": 1}
    alice hears nothing

# Meta channels cannot be unsubscribed from
alice handshakes
alice -> /meta/unsubscribe {"subscription": "/meta/connect"}
alice <- /meta/unsubscribe error "403::unsubscribe_failed"

# An array longer than the limit is refused, even if it repeats one channel
! max_subscriptions = 2
alice handshakes
alice -> /meta/subscribe {"subscription": ["/subscribe/same", "/subscribe/same", "/subscribe/same"]}
alice <- /meta/subscribe error "413:2:subscriptions_exceeded"
