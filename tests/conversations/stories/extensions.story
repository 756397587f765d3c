-- The extensions timesync, timestamp, activity and request.

transports: long-polling, websocket, callback-polling

# Clients can compare their clocks with the server's
alice -> /meta/handshake {"ext": {"timesync": {"tc": 12345, "l": 0, "o": 0}}}
alice <- /meta/handshake ok {"clientId": new $alice,
    "ext": {"timesync": {"tc": 12345, "ts": <integer>, "p": <0 to 5000>, "a": <integer>}}, ...}

# A client whose estimate of the server's clock is inaccurate gets another answer
alice -> /meta/handshake {"ext": {"timesync": {"tc": 12345, "l": 0, "o": 0}}}
alice <- /meta/handshake ok {"clientId": new $alice, "ext": {"timesync": {"ts": new $now, "a": new $away, ...}}, ...}
-- The client sends the difference with the wrong sign.
alice -> /meta/connect {"ext": {"timesync": {"tc": 12345, "l": 10, "o": $away}}}
alice <- /meta/connect ok {"ext": {"timesync": {"tc": 12345, "ts": <integer>, "p": <0 to 5000>, "a": <integer>}, ...}}

# Timesync can be disabled
! timesync = false
alice -> /meta/handshake {"ext": {"timesync": {"tc": 12345, "l": 0, "o": 0}}}
alice <- /meta/handshake ok {"clientId": new $alice, "ext": absent, ...}

# The timestamp extension adds a timestamp to every message
! timestamp = true
alice -> /meta/handshake
alice <- /meta/handshake ok {"clientId": new $alice, "timestamp": <text>, ...}
alice -> /meta/subscribe {"subscription": "/extensions/timestamp"}
alice <- /meta/subscribe ok {"timestamp": <text>}
bob -> /meta/handshake
bob <- /meta/handshake ok {"clientId": new $bob, "timestamp": <text>, ...}
bob -> /extensions/timestamp {"data": 1}
bob <- /extensions/timestamp ok {"timestamp": <text>}
on long-polling, callback-polling:
    alice -> /meta/connect
    alice <- /extensions/timestamp {"data": 1, "timestamp": <text>}
             /meta/connect ok {"timestamp": <text>}
on websocket:
    alice <- /extensions/timestamp {"data": 1, "timestamp": <text>}

# Without the timestamp extension, messages have no timestamps
alice handshakes
alice connects

# A client that only connects is disconnected after max_inactivity
! max_inactivity = 200
alice handshakes
alice connects
400 ms pass
alice -> /meta/connect {"advice": {"timeout": 0}}
alice <- {"channel": "/meta/disconnect", "successful": true}
         /meta/connect error "402::session_unknown" {"advice": {"reconnect": "none", "interval": 0, "timeout": 30000}}

# A client that publishes is not disconnected for inactivity
! max_inactivity = 1000
alice handshakes
alice connects
600 ms pass
alice publishes 1 to /extensions/activity
600 ms pass
alice -> /meta/connect {"advice": {"timeout": 0}}
alice <- /meta/connect ok {"advice": {"reconnect": "retry", "interval": 0, "timeout": 30000}}

# A client cannot use, publish to or subscribe to the reply channels of others
alice -> /meta/handshake {"ext": {"request": true}}
alice <- /meta/handshake ok {"clientId": new $alice, "ext": {"ret": new $ret, ...}, ...}
alice connects
bob handshakes
bob connects
alice -> /story/power {"data": 1, "ext": {"replyTo": "/ret/AAAAAAAAAAAAAAAAAAAAAA/4000001"}}
alice <- /story/power error "403:replyTo:reply_denied"
bob -> /ret/AAAAAAAAAAAAAAAAAAAAAA/4000001 {"data": 1}
bob <- /ret/AAAAAAAAAAAAAAAAAAAAAA/4000001 error "403:/ret/AAAAAAAAAAAAAAAAAAAAAA/4000001:reply_denied"
bob -> /ret/417AAAAAAAAAAAAAAAAAAAAAAAAAA/4000001 {"data": 1}
bob <- /ret/417AAAAAAAAAAAAAAAAAAAAAAAAAA/4000001 error "403:/ret/417AAAAAAAAAAAAAAAAAAAAAAAAAA/4000001:reply_denied"
bob -> /meta/subscribe {"subscription": "/ret/**"}
bob <- /meta/subscribe error "403:denied_by_security_policy:subscribe_denied" {"subscription": "/ret/**"}
alice disconnects
bob disconnects
