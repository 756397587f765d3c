-- Presence: who is on a channel, for clients with the right to know.

transports: long-polling, websocket
! login_passwords = "tests/conversations/login/passwords"
! rights = "tests/conversations/login/rights.toml"
! channels = {"/login/**": {"presence": true}}

# A client with the right sees a channel's members, and is told who joins and leaves
ada -> /meta/handshake {"ext": {"delivery": {"session": "ada"}, "authentication": {"user": "ada", "password": "ada's password"}}}
ada <- /meta/handshake ok {"clientId": new $ada, ...}
ada subscribes to /sys/presence/login/room
ada connects
bob -> /meta/handshake {"ext": {"delivery": {"session": "bob/1"}, "authentication": {"user": "bob", "password": "bob's password"}}}
bob <- /meta/handshake ok {"clientId": new $bob, ...}
ada ~> /meta/connect
bob subscribes to /login/room
ada <~ /sys/presence/login/room {"data": {"channel": "/login/room", "count": 1, "joined": [{"subject": "bob", "session": "client/bob/1", "since": new $since, "state": "here"}], "left": [], "changed": []}, ...}
       /meta/connect ok
-- Another client resumes the session, which was a member all the time.
bob -> /meta/handshake {"ext": {"delivery": {"session": "bob/1"}, "authentication": {"user": "bob", "password": "bob's password"}}}
bob <- /meta/handshake ok {"clientId": new $bob, "ext": {"delivery": {"resumed": true, ...}, ...}, ...}
ada -> /service/presence {"data": {"channel": "/login/room"}}
ada <- /service/presence ok
ada -> /meta/connect
ada <- /service/presence {"data": {"channel": "/login/room", "count": 1, "members": [{"subject": "bob", "session": "client/bob/1", "since": $since, "state": "here"}], "next": null}, "successful": true, ...}
       /meta/connect ok
ada ~> /meta/connect
ada is held
bob ends the session
ada <~ /sys/presence/login/room {"data": {"channel": "/login/room", "count": 0, "joined": [], "left": [{"subject": "bob", "session": "client/bob/1"}], "changed": []}, ...}
       /meta/connect ok
ada ends the session

# A client without the right is told nothing of a channel's members
bob -> /meta/handshake {"ext": {"authentication": {"user": "bob", "password": "bob's password"}}}
bob <- /meta/handshake ok {"clientId": new $bob, ...}
bob -> /service/presence {"data": {"channel": "/login/room"}}
bob <- /service/presence error "403:denied_by_rights:presence_denied"
bob -> /service/presence {"data": {"channel": "/login/room", "limit": 0}}
bob <- /service/presence error "403:denied_by_rights:presence_denied"
bob -> /meta/subscribe {"subscription": "/sys/presence/login/room"}
bob <- /meta/subscribe error "403:denied_by_rights:presence_denied"
bob disconnects
