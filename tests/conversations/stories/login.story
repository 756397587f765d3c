-- Clients that log in: who owns a session, and who may do what.

transports: long-polling, websocket
! login_passwords = "tests/conversations/login/passwords"
! rights = "tests/conversations/login/rights.toml"
! channels = {"/login/**": {"history": 5}}

# A session belongs to its user alone, even while its client is away
ada -> /meta/handshake {"ext": {"ack": true, "delivery": {"session": "ada/1"}, "authentication": {"user": "ada", "password": "ada's password"}}}
ada <- /meta/handshake ok {"clientId": new $ada, "ext": {"authentication": {"subject": "ada", "method": "password", ...}, ...}, ...}
bob -> /meta/handshake {"ext": {"delivery": {"session": "ada/1"}, "authentication": {"user": "bob", "password": "bob's password"}}}
bob <- /meta/handshake error "403:denied_by_security_policy:session_name_denied" {"advice": {"reconnect": "none", ...}}
ada disconnects
bob -> /meta/handshake {"ext": {"delivery": {"session": "ada/1"}, "authentication": {"user": "bob", "password": "bob's password"}}}
bob <- /meta/handshake error "403:denied_by_security_policy:session_name_denied" {"advice": {"reconnect": "none", ...}}
eve -> /meta/handshake {"ext": {"delivery": {"session": "ada/1"}}}
eve <- /meta/handshake error "403:no_credentials:handshake_denied" {"advice": {"reconnect": "none", ...}}
ada -> /meta/handshake {"ext": {"ack": true, "delivery": {"session": "ada/1"}, "authentication": {"user": "ada", "password": "ada's password"}}}
ada <- /meta/handshake ok {"clientId": new $ada, "ext": {"delivery": {"resumed": true, ...}, ...}, ...}
ada ends the session

# A user may do what a rule allows and no rule denies
ada -> /meta/handshake {"ext": {"delivery": {"session": "ada"}, "authentication": {"user": "ada", "password": "ada's password"}}}
ada <- /meta/handshake ok {"clientId": new $ada, ...}
bob -> /meta/handshake {"ext": {"authentication": {"user": "bob", "password": "bob's password"}}}
bob <- /meta/handshake ok {"clientId": new $bob, ...}
bob -> /meta/subscribe {"subscription": ["/login/news", "/login/closed"]}
       /meta/subscribe {"subscription": "/**"}
       /meta/subscribe {"subscription": "/elsewhere"}
       /login/news {"data": "not for bob to say"}
       /service/ptp {"data": {"destinations": ["ada"], "content": "nor this"}}
bob <- /meta/subscribe ok
       /meta/subscribe error "403:denied_by_rights:subscribe_denied" {...}
       /meta/subscribe error "403:denied_by_rights:subscribe_denied" {...}
       /login/news error "403:denied_by_rights:publish_denied" {...}
       /service/ptp error "403:denied_by_rights:publish_denied" {...}
bob connects
ada -> /login/news {"data": "news"}
       /login/closed {"data": "no news"}
       /elsewhere {"data": "nothing"}
ada <- /login/news ok
       /login/closed error "403:denied_by_rights:publish_denied" {...}
       /elsewhere error "403:denied_by_rights:publish_denied" {...}
on long-polling:
    bob -> /meta/connect
    bob <- /login/news {"data": "news"}
           /meta/connect ok
on websocket:
    bob <- /login/news {"data": "news"}
bob disconnects
ada disconnects

# Reading the history of a channel needs a right of its own
ada -> /meta/handshake {"ext": {"authentication": {"user": "ada", "password": "ada's password"}}}
ada <- /meta/handshake ok {"clientId": new $ada, ...}
bob -> /meta/handshake {"ext": {"authentication": {"user": "bob", "password": "bob's password"}}}
bob <- /meta/handshake ok {"clientId": new $bob, ...}
bob -> /meta/subscribe {"subscription": "/login/news/1", "ext": {"delivery": {"initialUpdate": true}}}
       /meta/subscribe {"subscription": "/login/bob", "ext": {"replay": -2}}
       /meta/subscribe {"subscription": "/login/bob", "ext": {"replay": -1}}
       /service/topics {"data": {"get": "/login/news/1"}}
bob <- /meta/subscribe error "403:denied_by_rights:history_denied" {...}
       /meta/subscribe error "403:denied_by_rights:replay_denied" {...}
       /meta/subscribe ok {...}
       /service/topics error "403:denied_by_rights:history_denied" {...}
ada -> /meta/subscribe {"subscription": "/login/news/*", "ext": {"delivery": {"initialUpdate": true}}}
       /meta/subscribe {"subscription": "/login/news/**", "ext": {"delivery": {"initialUpdate": true}}}
       /meta/subscribe {"subscription": "/login/news/1", "ext": {"replay": -2}}
       /meta/subscribe {"subscription": "/login/ada", "ext": {"replay": -2}}
       /meta/subscribe {"subscription": "/login/*", "ext": {"replay": {"/login/ada": -2}}}
       /meta/subscribe {"subscription": "/login/*", "ext": {"replay": {"/login/bob": -2}}}
ada <- /meta/subscribe ok
       /meta/subscribe error "403:denied_by_rights:history_denied" {...}
       /meta/subscribe error "403:denied_by_rights:replay_denied" {...}
       /meta/subscribe ok {...}
       /meta/subscribe ok {...}
       /meta/subscribe error "403:denied_by_rights:replay_denied" {...}
ada disconnects
bob disconnects

# Operators are told of each login and logout once
walter -> /meta/handshake {"ext": {"ack": true, "delivery": true, "authentication": {"token": $operator}}}
walter <- /meta/handshake ok {"clientId": new $walter, ...}
walter -> /meta/subscribe {"subscription": ["/sys/login", "/sys/logout"]}
walter <- /meta/subscribe ok
walter -> /meta/connect {"ext": {"ack": 0}}
walter <- /meta/connect ok {"ext": {"ack": 1}}
walter ~> /meta/connect {"ext": {"ack": 1}}
ada -> /meta/handshake {"ext": {"delivery": {"session": "ada/70"}, "authentication": {"user": "ada", "password": "ada's password"}}}
ada <- /meta/handshake ok {"clientId": new $ada, ...}
walter <~ /sys/login {"data": {"subject": "ada", "session": "client/ada/70", ...}, "ext": {"delivery": {"properties": {"_subjectId": "ada", ...}, ...}}}
          /meta/connect ok {"ext": {"ack": 2}}
walter ~> /meta/connect {"ext": {"ack": 2}}
ada ends the session
walter <~ /sys/logout {"data": {"subject": "ada", "session": "client/ada/70", ...}, "ext": {"delivery": {"properties": {"_subjectId": "ada", ...}, ...}}}
          /meta/connect ok {"ext": {"ack": 3}}
walter ~> /meta/connect {"ext": {"ack": 3}}
walter is held for 100 ms
walter leaves while waiting
