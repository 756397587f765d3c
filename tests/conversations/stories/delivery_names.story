-- Named sessions and operators: who may claim which session, and which sessions end for others.

transports: long-polling, websocket

# A handshake with clearSessions ends the subject's other sessions, whose messages become dead letters
walter watches the dead letters
alice takes /names/alone under {"session": "alone/1"}
bob handshakes
bob publishes 1 to /names/alone
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /names/alone {"data": 1, ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice ~> /meta/connect {"ext": {"ack": 2, "delivery": {"pending": [1]}}}
carol -> /meta/handshake {"ext": {"ack": true, "delivery": {"session": {"name": "alone/2", "clearSessions": true}}}}
carol <- /meta/handshake ok {"clientId": new $carol, "ext": {"ack": true, "delivery": {"resumed": false, "waiting": 0, ...}}, ...}
on long-polling:
    alice <~ {"channel": "/meta/disconnect", "successful": true, ...}
             /meta/connect ok {"advice": {"reconnect": "none", ...}, ...}
on websocket:
    alice <- /meta/connect ok {"advice": {"reconnect": "none", ...}, ...}
             {"channel": "/meta/disconnect", "successful": true}
walter <~ /sys/deadMessage {"data": {"content": 1, "receiver": "client/alone/1", "errorCode": "communication.noConnection.dead", "reason": <text like .*ended by client/alone/2.*>, ...}, ...}
          /meta/connect ok {"ext": {"ack": 2}}
alice -> /meta/connect {"ext": {"ack": 2}}
alice <- /meta/connect error "402::session_unknown" {"advice": {"reconnect": "handshake", ...}}
carol ends the session
walter disconnects

# Ending a named session leaves dead letters, unless the client asks to discard them
walter watches the dead letters
alice takes /names/ended under {"session": "ended/1"}
bob handshakes
bob publishes 1 to /names/ended
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /names/ended {"data": 1, ...}
         /meta/connect ok {"ext": {"ack": 2}}
bob publishes 2 to /names/ended
-- The disconnect acknowledges the first message; the waiting one is not handed over any more.
alice -> /meta/disconnect {"ext": {"ack": 2, "delivery": {"end": true}}}
alice <- /meta/disconnect ok
walter <~ /sys/deadMessage {"data": {"content": 2, "receiver": "client/ended/1", "errorCode": "communication.noConnection.dead", "reason": <text like .*ended by its client>, ...}, ...}
          /meta/connect ok {"ext": {"ack": 2}}
walter ~> /meta/connect {"ext": {"ack": 2}}
alice takes /names/ended under {"session": "ended/1"}
bob publishes 3 to /names/ended
alice -> /meta/disconnect {"ext": {"delivery": {"discard": true}}}
alice <- /meta/disconnect error "400:user.illegalArgument,discard:delivery_invalid"
alice ends the session
walter hears nothing
walter -> /meta/disconnect
walter <~ /meta/connect ok {...}
walter <- /meta/disconnect ok

# A refused handshake with clearSessions ends no session
! extension = ["tests.conversations.policies:censorship"]
alice -> /meta/handshake {"ext": {"ack": true, "delivery": {"session": "denied/1"}}}
alice <- /meta/handshake ok {"clientId": new $alice, ...}
alice -> /meta/subscribe {"subscription": "/names/denied"}
alice <- /meta/subscribe ok {...}
alice -> /meta/connect {"ext": {"ack": 0}}
alice <- /meta/connect ok {...}
carol -> /meta/handshake {"ext": {"name": "broken", "delivery": {"session": {"name": "denied/2", "clearSessions": true}}}}
carol <- /meta/handshake error "500::server_fault" {"advice": {"reconnect": "handshake", ...}}
alice -> /names/denied {"data": 1}
alice <- /names/denied ok {...}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /names/denied {"data": 1, ...}
         /meta/connect ok {...}
alice -> /meta/disconnect {"ext": {"delivery": {"end": true, "discard": true}}}
alice <- /meta/disconnect ok {...}

# A stranger can neither end nor take over an operator's session
olga -> /meta/handshake {"ext": {"ack": true, "delivery": {"session": "names-ops/1"}, "authentication": {"token": $operator}}}
olga <- /meta/handshake ok {"clientId": new $olga, ...}
carol -> /meta/handshake {"ext": {"delivery": {"session": {"name": "names-ops/2", "clearSessions": true}}}}
carol <- /meta/handshake error "403:user.security.authorization.notAuthorized:session_name_denied" {"advice": {"reconnect": "none", ...}}
carol -> /meta/handshake {"ext": {"delivery": {"session": "names-ops/1"}}}
carol <- /meta/handshake error "403:user.security.authorization.notAuthorized:session_name_denied" {"advice": {"reconnect": "none", ...}}
olga -> /meta/connect {"ext": {"ack": 0}}
olga <- /meta/connect ok {"ext": {"ack": 1}}
olga ends the session

# A subject has no more named sessions than its maximum
! max_sessions_per_subject = 1
alice takes /names/few under {"session": "few/1"}
bob -> /meta/handshake {"ext": {"delivery": {"session": {"name": "few/2", "maxSessions": 100}}}}
bob <- /meta/handshake error "403:user.configuration.maxSession:sessions_exceeded" {"advice": {"reconnect": "none", ...}}
alice ends the session
bob -> /meta/handshake {"ext": {"delivery": {"session": {"name": "few/2", "maxSessions": 100}}}}
bob <- /meta/handshake ok {"clientId": new $bob, "ext": {"delivery": {"session": {"name": "client/few/2", "maxSessions": 1, ...}, ...}}, ...}
bob ends the session

# A handshake with a wrong operators' token is refused
mallory -> /meta/handshake {"ext": {"authentication": {"token": "open sesame"}}}
mallory <- /meta/handshake error "403:no_login:handshake_denied" {"advice": {"reconnect": "none", ...}}

# A token that only a policy accepts gives no rights of operators
! extension = ["tests.conversations.policies:doorkeeper"]
alice -> /meta/handshake {"ext": {"authentication": {"token": "a ticket of another kind"}}}
alice <- /meta/handshake ok {"clientId": new $alice, ...}
alice -> /meta/subscribe {"subscription": "/sys/deadMessage"}
alice <- /meta/subscribe error "403:denied_by_security_policy:subscribe_denied"
alice -> /service/admin {"data": {"cmd": "client/joe/?sessions"}}
alice <- /service/admin error "403:denied_by_security_policy:publish_denied"
alice disconnects

# Of five sessions with a maximum of three, two are refused until one of them ends the others
ann takes /names/three under {"session": {"name": "three/1", "maxSessions": 3}}
ben takes /names/three under {"session": {"name": "three/2", "maxSessions": 3}}
cat takes /names/three under {"session": {"name": "three/3", "maxSessions": 3}}
dan -> /meta/handshake {"ext": {"delivery": {"session": {"name": "three/4", "maxSessions": 3}}}}
dan <- /meta/handshake error "403:user.configuration.maxSession:sessions_exceeded" {"advice": {"reconnect": "none", ...}}
eve -> /meta/handshake {"ext": {"delivery": {"session": {"name": "three/5", "maxSessions": 3}}}}
eve <- /meta/handshake error "403:user.configuration.maxSession:sessions_exceeded" {"advice": {"reconnect": "none", ...}}
eve -> /meta/handshake {"ext": {"delivery": {"session": {"name": "three/5", "maxSessions": 3, "clearSessions": true}}}}
eve <- /meta/handshake ok {"clientId": new $eve, ...}
on websocket:
    ann <- {"channel": "/meta/disconnect", "successful": true}
    ben <- {"channel": "/meta/disconnect", "successful": true}
    cat <- {"channel": "/meta/disconnect", "successful": true}
olga operates
olga asks "client/three/?sessions" and hears "three/5"
eve ends the session

# A handshake with a negative maxSessions is refused
alice -> /meta/handshake {"ext": {"delivery": {"session": {"name": "odd/1", "maxSessions": -16}}}}
alice <- /meta/handshake error "400:user.illegalArgument,maxSessions:delivery_invalid" {"advice": {"reconnect": "none", ...}}

# A session whose client does not return in time ends, and its messages become dead letters
! max_interval = 200
walter watches the dead letters
alice takes /names/late under {"session": {"name": "late/1", "timeout": 300}}
bob handshakes
bob publishes "too late" to /names/late
alice -> /meta/disconnect {"ext": {"ack": 1}}
alice <- /meta/disconnect ok
walter <~ /sys/deadMessage {"data": {"content": "too late", "receiver": "client/late/1", "errorCode": "communication.noConnection", ...}, ...}
          /meta/connect ok {"ext": {"ack": 2}}
olga operates
olga asks "client/late/1/?dispatcherActive" in vain
walter disconnects

# Another client continues a session in order, with a secret of its own
alice takes /names/eight under {"session": "eight/1", "secret": "the first"}
alice -> /meta/disconnect {"ext": {"ack": 1}}
alice <- /meta/disconnect ok
bob handshakes
bob -> /names/eight {"data": 1}
       /names/eight {"data": 2}
       /names/eight {"data": 3}
       /names/eight {"data": 4}
       /names/eight {"data": 5}
       /names/eight {"data": 6}
       /names/eight {"data": 7}
       /names/eight {"data": 8}
bob <- 8 times /names/eight ok
carol -> /meta/handshake {"ext": {"ack": true, "delivery": {"session": "eight/1", "secret": "the second"}}}
carol <- /meta/handshake ok {"clientId": new $carol, "ext": {"ack": true, "delivery": {"resumed": true, "waiting": 8, ...}}, ...}
carol -> /meta/connect {"ext": {"ack": 0}}
carol <- /names/eight {"data": 1, "ext": {"delivery": {"cbSessionId": "the second", ...}}}
         /names/eight {"data": 2, "ext": {"delivery": {"cbSessionId": "the second", ...}}}
         /names/eight {"data": 3, "ext": {"delivery": {"cbSessionId": "the second", ...}}}
         /names/eight {"data": 4, "ext": {"delivery": {"cbSessionId": "the second", ...}}}
         /names/eight {"data": 5, "ext": {"delivery": {"cbSessionId": "the second", ...}}}
         /names/eight {"data": 6, "ext": {"delivery": {"cbSessionId": "the second", ...}}}
         /names/eight {"data": 7, "ext": {"delivery": {"cbSessionId": "the second", ...}}}
         /names/eight {"data": 8, "ext": {"delivery": {"cbSessionId": "the second", ...}}}
         /meta/connect ok {"ext": {"ack": 1}}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /meta/connect error "402::session_taken" {...}
carol ends the session
