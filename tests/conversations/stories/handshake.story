-- /meta/handshake: its reply, the fields that are ignored, and how it fails.

transports: long-polling, websocket, callback-polling

# A handshake creates a session and gets advice
alice -> /meta/handshake
alice <- {"channel": "/meta/handshake", "id": "1", "successful": true, "clientId": new $alice,
          "version": "1.0", "minimumVersion": "1.0",
          "supportedConnectionTypes": ["websocket", "long-polling", "callback-polling"],
          "advice": {"reconnect": "retry", "interval": 0, "timeout": 30000}}
alice -> /meta/connect
alice <- {"channel": "/meta/connect", "id": "2", "successful": true}

# Client ids are a bucket, 128 random bits and a seal
alice -> /meta/handshake
alice <- /meta/handshake ok {"clientId": <text like [0-9]{3}[A-Za-z0-9_-]{26}>, ...}

# The advice has the timeout and interval of the settings
! timeout = 12345
! interval = 67
alice -> /meta/handshake
alice <- /meta/handshake ok {"advice": {"reconnect": "retry", "interval": 67, "timeout": 12345}, ...}

# With handshake_reconnect, clients are told when to handshake again
pins: 47
! handshake_reconnect = true
! max_interval = 4321
alice -> /meta/handshake
alice <- /meta/handshake ok {"clientId": new $alice,
    "advice": {"reconnect": "retry", "interval": 0, "timeout": 30000, "maxInterval": 4321}, ...}
alice -> /meta/connect {"advice": {"timeout": 0}}
alice <- /meta/connect ok {
    "advice": {"reconnect": "retry", "interval": 0, "timeout": 30000, "maxInterval": 4321}}

# The reply lists the enabled transports in the server's order of preference
! transports = ["long-polling", "websocket"]
transports: long-polling, websocket
alice -> /meta/handshake
alice <- /meta/handshake ok {"supportedConnectionTypes": ["long-polling", "websocket"], ...}

# Version, client id and advice of the request are ignored
alice handshakes
alice -> /meta/handshake {"version": "0.1beta", "minimumVersion": "9.9", "clientId": $alice, "advice": {"timeout": 60000, "interval": 0}}
alice <- /meta/handshake ok {"clientId": new $again,
    "advice": {"reconnect": "retry", "interval": 0, "timeout": 30000}, ...}
-- It is a new session; the old one lives on beside it.
alice -> /meta/subscribe {"clientId": $again, "subscription": "/handshake/again"}
alice <- /meta/subscribe ok
on long-polling, callback-polling:
    alice -> /meta/subscribe {"subscription": "/handshake/again"}
    alice <- /meta/subscribe ok

# An unknown client id in a handshake is ignored
alice -> /meta/handshake {"clientId": "0123456789abcdef0123456789abcdef"}
alice <- /meta/handshake ok {"clientId": new $alice, ...}
alice connects

# An empty ext is tolerated everywhere
alice -> /meta/handshake {"ext": {}}
alice <- /meta/handshake ok {"clientId": new $alice, "version": "1.0", "minimumVersion": "1.0",
    "supportedConnectionTypes": $transports,
    "advice": {"reconnect": "retry", "interval": 0, "timeout": 30000}}
alice -> /meta/connect {"ext": {}}
alice <- /meta/connect ok
alice -> /meta/subscribe {"subscription": "/handshake/ext", "ext": {}}
alice <- /meta/subscribe ok

# A handshake whose ext is not an object is refused
alice -> /meta/handshake {"ext": "ack"}
alice <- /meta/handshake error "400::ext_invalid" {...}

# Unknown fields and connection types in a handshake are ignored
alice -> /meta/handshake {"supportedConnectionTypes": ["carrier-pigeon", $transport], "colour": "green"}
alice <- /meta/handshake ok {"clientId": <text>, "colour": absent, ...}

# A handshake without a connection type of the server fails
alice -> /meta/handshake {"supportedConnectionTypes": ["carrier-pigeon"]}
alice <- /meta/handshake error "406::connection_types_unsupported" {
    "supportedConnectionTypes": $transports,
    "advice": {"reconnect": "none", "interval": 0, "timeout": 30000}, ...}

# A handshake that names no connection type fails
alice -> /meta/handshake {"supportedConnectionTypes": []}
alice <- /meta/handshake error "406::connection_types_unsupported" {
    "clientId": absent, "advice": {"reconnect": "none", "interval": 0, "timeout": 30000}, ...}
alice -> /meta/handshake {"supportedConnectionTypes": absent}
alice <- /meta/handshake error "406::connection_types_unsupported" {
    "clientId": absent, "advice": {"reconnect": "none", "interval": 0, "timeout": 30000}, ...}
alice -> /meta/handshake {"supportedConnectionTypes": "long-polling"}
alice <- /meta/handshake error "406::connection_types_unsupported" {
    "clientId": absent, "advice": {"reconnect": "none", "interval": 0, "timeout": 30000}, ...}

# A failed handshake sets no cookie
transports: long-polling, callback-polling
alice -> /meta/handshake {"supportedConnectionTypes": []}
alice <- 200
    Set-Cookie: absent
    /meta/handshake error "406::connection_types_unsupported" {...}

# A subscription beside a handshake is refused and has no effect
pins: 13
-- CometD answers 500; the Bayeux specification says that the other messages must not be processed.
alice -> /meta/handshake
         /meta/subscribe {"subscription": "/handshake/along", "clientId": absent}
alice <- /meta/handshake ok {"clientId": new $alice, ...}
         /meta/subscribe error "400::handshake_batched"
alice -> /meta/unsubscribe {"subscription": "/handshake/along"}
alice <- /meta/unsubscribe error "400::channel_missing"
alice connects

# A publish beside a handshake is refused and has no effect
pins: 14
bob handshakes
bob subscribes to /handshake/published
alice -> /meta/handshake
         /handshake/published {"data": "too early"}
alice <- /meta/handshake ok {"clientId": new $alice, ...}
         /handshake/published error "400::handshake_batched"
bob connects

# The reply to a handshake comes first, wherever the handshake is in the request
alice -> /handshake/late {"data": 1}
         /meta/handshake
alice <- /meta/handshake ok {"clientId": new $alice, ...}
         /handshake/late error "400::handshake_batched"
alice connects

# Only the first handshake in a request succeeds
alice -> /meta/handshake
         /meta/handshake
alice <- /meta/handshake ok {"clientId": new $alice, ...}
         /meta/handshake error "400::handshake_batched" {"clientId": absent, ...}
alice connects

# A message of an existing session beside a handshake is refused
transports: long-polling, callback-polling
alice handshakes
alice -> /meta/handshake
         /meta/subscribe {"subscription": "/handshake/living"}
alice <- /meta/handshake ok {"clientId": <text>, ...}
         /meta/subscribe error "400::handshake_batched"
alice -> /meta/unsubscribe {"subscription": "/handshake/living"}
alice <- /meta/unsubscribe error "400::channel_missing"

# A client may subscribe and publish before its first connect
alice handshakes
alice subscribes to /handshake/early
bob handshakes
bob publishes "hello" to /handshake/early
on long-polling, callback-polling:
    alice -> /meta/connect
    alice <- /handshake/early {"data": "hello"}
             /meta/connect ok
on websocket:
    alice <- /handshake/early {"data": "hello"}
