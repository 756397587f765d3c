-- The BAYEUX_BROWSER cookie: a session belongs to the browser that created it, and its client id alone
-- gives no access to it, unless the client is a program that has never sent a cookie. Also the number
-- of connects that the server holds for one browser.

# A handshake gives the browser a cookie
pins: 7
transports: long-polling, callback-polling
alice -> /meta/handshake
alice <- 200
    Set-Cookie: BAYEUX_BROWSER=<text like [0-9]{3}[A-Za-z0-9_-]{26}>; <text like (Path=/; HttpOnly|HttpOnly; Path=/)>
    /meta/handshake ok {...}

# The cookie's attributes are settings
pins: 7
transports: long-polling
! browser_cookie_name = "HF"
! browser_cookie_domain = "example.org"
! browser_cookie_path = "/cometd"
! browser_cookie_max_age = 77
! browser_cookie_secure = true
! browser_cookie_http_only = false
! browser_cookie_same_site = "None"
! browser_cookie_partitioned = true
alice -> /meta/handshake
alice <- 200
    Set-Cookie: HF=<text>
    Set-Cookie: <text>; Domain=example.org<text>
    Set-Cookie: <text>; Path=/cometd<text>
    Set-Cookie: <text>; Max-Age=77<text>
    Set-Cookie: <text>; Secure<text>
    Set-Cookie: <text>; SameSite=None<text>
    Set-Cookie: <text>; Partitioned<text>
    Set-Cookie: <text like ((?!HttpOnly).)*>
    /meta/handshake ok {...}

# A cookie that the server never gave is replaced
transports: long-polling, callback-polling
alice -> /meta/handshake
    Cookie: BAYEUX_BROWSER=417AAAAAAAAAAAAAAAAAAAAAAAAAA
alice <- 200
    Set-Cookie: BAYEUX_BROWSER=<text like [0-9]{3}[A-Za-z0-9_-]{26}>; <text>
    /meta/handshake ok {"clientId": new $alice, ...}
alice -> /meta/connect
alice <- /meta/connect ok
mallory -> /meta/connect {"clientId": $alice}
    Cookie: BAYEUX_BROWSER=417AAAAAAAAAAAAAAAAAAAAAAAAAA
mallory <- /meta/connect error "402::session_unknown" {"advice": {"reconnect": "handshake", "interval": 0, "timeout": 30000}}

# A socket with a cookie that the server never gave gets another
transports: websocket
alice -> UPGRADE /cometd
    Cookie: BAYEUX_BROWSER=0123456789abcdef0123456789abcdef
alice <- 101
    Set-Cookie: BAYEUX_BROWSER=<text like [0-9]{3}[A-Za-z0-9_-]{26}>; <text>
alice handshakes
alice connects

# A client id that the server never gave is unknown
transports: long-polling, websocket, callback-polling
mallory -> /meta/connect {"clientId": "417AAAAAAAAAAAAAAAAAAAAAAAAAA"}
mallory <- /meta/connect error "402::session_unknown" {"advice": {"reconnect": "handshake", "interval": <0 to 60000>, "timeout": 30000}}
mallory -> /meta/subscribe {"clientId": "0123456789abcdef0123456789abcdef", "subscription": "/browsers/invented"}
mallory <- /meta/subscribe error "402::session_unknown"
mallory -> /browsers/invented {"clientId": "\u00fc", "data": 1}
mallory <- /browsers/invented error "402::session_unknown"

# A second handshake of the browser sets no second cookie
pins: 7
transports: long-polling, callback-polling
alice handshakes
alice -> /meta/handshake
alice <- 200
    Set-Cookie: absent
    /meta/handshake ok {...}

# Without the cookie a session is unknown
pins: 9
transports: long-polling, callback-polling
alice handshakes
alice connects
alice forgets the cookies
alice -> /meta/connect
alice <- /meta/connect error "402:send the cookie:cookie_missing" {"advice": {"reconnect": "handshake", "interval": <0 to 60000>, "timeout": 30000}}
alice -> /browsers/cookieless {"data": 1}
alice <- /browsers/cookieless error "402:send the cookie:cookie_missing"
-- So it is for the id of a session that has ended, which nobody learns that way.
bob handshakes
bob disconnects
mallory -> /browsers/cookieless {"data": 1, "clientId": $bob}
mallory <- /browsers/cookieless error "402:send the cookie:cookie_missing"

# A stolen client id is worth nothing without the cookie
pins: 11
transports: long-polling, websocket, callback-polling
alice handshakes
alice connects
alice ~> /meta/connect
mallory handshakes
mallory connects
mallory -> /meta/connect {"clientId": $alice}
mallory <- /meta/connect error "402::session_unknown" {"advice": {"reconnect": "handshake", "interval": 0, "timeout": 30000}}
mallory -> /meta/subscribe {"clientId": $alice, "subscription": "/browsers/stolen"}
mallory <- /meta/subscribe error "402::session_unknown"
mallory -> /meta/disconnect {"clientId": $alice}
mallory <- /meta/disconnect error "402::session_unknown"
-- Alice notices nothing.
alice is held
alice -> /meta/unsubscribe {"subscription": "/browsers/stolen"}
alice <- /meta/unsubscribe error "400::channel_missing"

# A stolen client id is worth nothing on a fresh connection either
pins: 11
transports: long-polling, callback-polling
alice handshakes
mallory -> /meta/connect {"clientId": $alice}
mallory <- /meta/connect error "402:send the cookie:cookie_missing" {"advice": {"reconnect": "handshake", "interval": <0 to 60000>, "timeout": 30000}}

# The client id of a page is worth nothing on a fresh socket either
pins: 11
transports: websocket
alice -> UPGRADE /cometd
    Origin: $server
alice <- 101
alice handshakes
mallory -> /meta/connect {"clientId": $alice}
mallory <- /meta/connect error "402::session_unknown" {"advice": {"reconnect": "handshake", "interval": <0 to 60000>, "timeout": 30000}}

# A program that never sends a cookie continues over a new socket
-- cometd-nodejs-client, for example: its sockets keep no cookies.
transports: websocket
alice handshakes
alice subscribes to /browsers/program
alice connects
alice ~> /meta/connect
alice drops
bob handshakes
bob publishes "while it was away" to /browsers/program
alice forgets the cookies
alice -> /meta/connect {"advice": {"timeout": 0}}
alice <- /browsers/program {"data": "while it was away"}
         /meta/connect ok {"advice": <any>}
-- Pages, clients with a cookie and clients over HTTP do not get in that way.
mallory -> UPGRADE /cometd
    Origin: $server
mallory <- 101
mallory -> /meta/connect {"clientId": $alice}
mallory <- /meta/connect error "402::session_unknown" {"advice": <any>}
trudy -> UPGRADE /cometd
    Cookie: BAYEUX_BROWSER=another
trudy <- 101
trudy -> /meta/connect {"clientId": $alice}
trudy <- /meta/connect error "402::session_unknown" {"advice": <any>}
eve speaks long-polling
eve -> /meta/connect {"clientId": $alice}
eve <- /meta/connect error "402:send the cookie:cookie_missing" {"advice": <any>}

# A program that has sent its cookie once must send it from then on
transports: websocket
alice handshakes
alice connects
alice drops
-- With the cookie of the first socket.
alice -> /meta/connect {"advice": {"timeout": 0}}
alice <- /meta/connect ok {"advice": <any>}
mallory -> /meta/connect {"clientId": $alice}
mallory <- /meta/connect error "402::session_unknown" {"advice": <any>}
alice ~> /meta/connect
alice is held

# A program may handshake over HTTP and continue over sockets without the cookie
transports: websocket
alice speaks long-polling
alice handshakes
bob -> /meta/connect {"clientId": $alice}
bob <- /meta/connect ok {...}
bob drops
bob forgets the cookies
bob -> /meta/connect {"clientId": $alice, "advice": {"timeout": 0}}
bob <- /meta/connect ok {"advice": <any>}
-- It may, until it sends that cookie.
alice -> /meta/subscribe {"subscription": "/browsers/mixed"}
alice <- /meta/subscribe ok
mallory -> /meta/connect {"clientId": $alice}
mallory <- /meta/connect error "402::session_unknown" {"advice": <any>}

# A newcomer may open its socket before it has a cookie
-- Faye opens a socket and handshakes over HTTP at the same time: one browser, given two cookies.
transports: websocket
bob -> UPGRADE /cometd
bob <- 101
-- The server compares times in milliseconds.
10 ms pass
alice speaks long-polling
alice handshakes
bob -> /meta/connect {"clientId": $alice}
bob <- /meta/connect ok {...}
bob ~> /meta/connect {"clientId": $alice}
-- It may do so once: nobody else gets in that way, and the cookie of the handshake stays valid.
mallory -> /meta/connect {"clientId": $alice}
mallory <- /meta/connect error "402::session_unknown" {"advice": <any>}
alice -> /meta/subscribe {"subscription": "/browsers/newcomer"}
alice <- /meta/subscribe ok

# A newcomer may connect over HTTP until its socket is open
transports: websocket
bob -> UPGRADE /cometd
bob <- 101
alice speaks long-polling
alice handshakes
alice connects
bob -> /meta/subscribe {"clientId": $alice, "subscription": "/browsers/late"}
bob <- /meta/subscribe ok

# A newcomer cannot claim a session that has connected
pins: 11
transports: websocket
alice speaks long-polling
alice handshakes
alice connects
mallory -> /meta/connect {"clientId": $alice}
mallory <- /meta/connect error "402::session_unknown" {"advice": <any>}

# A newcomer of any worker cannot claim a session that connected more than a second ago
transports: websocket
alice speaks long-polling
alice handshakes
alice connects
1200 ms pass
mallory -> /meta/connect {"clientId": $alice}
mallory <- /meta/connect error "402::session_unknown" {"advice": <any>}

# A newcomer cannot claim a session of a browser that is known already
pins: 11
transports: websocket
alice speaks long-polling
alice -> /meta/handshake
    Cookie: BAYEUX_BROWSER=known
alice <- /meta/handshake ok {"clientId": new $alice, ...}
mallory -> /meta/connect {"clientId": $alice}
mallory <- /meta/connect error "402::session_unknown" {"advice": <any>}

# A socket whose upgrade had a cookie claims no session
pins: 11
transports: websocket
alice speaks long-polling
alice handshakes
mallory -> UPGRADE /cometd
    Cookie: BAYEUX_BROWSER=known
mallory <- 101
mallory -> /meta/connect {"clientId": $alice}
mallory <- /meta/connect error "402::session_unknown" {"advice": <any>}

# A client id that is trusted needs no cookie
pins: 11
transports: long-polling, websocket, callback-polling
! trust_client_session = true
alice handshakes
alice connects
bob -> /meta/subscribe {"clientId": $alice, "subscription": "/browsers/trusted"}
bob <- /meta/subscribe ok
bob ~> /meta/connect {"clientId": $alice}

# With trusted client ids, a second connect is held without the cookie
pins: 10
transports: long-polling, callback-polling
! trust_client_session = true
alice handshakes
alice connects
alice forgets the cookies
alice ~> /meta/connect
alice is held

# A stolen client id in the second message fails that message alone
pins: 12
transports: long-polling, websocket, callback-polling
alice handshakes
alice connects
alice ~> /meta/connect
mallory handshakes
mallory -> /browsers/batch {"data": 1}
           /browsers/batch {"data": 2, "clientId": $alice}
           /meta/disconnect {"clientId": $alice}
           /browsers/batch {"data": 3}
mallory <- /browsers/batch ok
           /browsers/batch error "402::session_unknown"
           /meta/disconnect error "402::session_unknown"
           /browsers/batch ok
alice is held

# All messages of a request must be of the session of the first
transports: long-polling, callback-polling
alice handshakes
bob shares the cookies of alice
bob handshakes
alice -> /meta/subscribe {"subscription": "/browsers/first"}
         /meta/subscribe {"subscription": "/browsers/first", "clientId": $bob}
alice <- /meta/subscribe ok
         /meta/subscribe error "402::session_unknown"

# A message without a client id belongs to no session
transports: long-polling, websocket, callback-polling
alice handshakes
alice -> /browsers/anonymous {"data": 1, "clientId": absent}
alice <- /browsers/anonymous error "402:send the clientId:client_id_missing"
alice -> /meta/connect {"clientId": absent}
alice <- /meta/connect error "402:send the clientId:client_id_missing" {"advice": {"reconnect": "handshake", "interval": 0, "timeout": 30000}}
alice -> /meta/subscribe {"subscription": "/browsers/anonymous", "clientId": ""}
alice <- /meta/subscribe error "402::session_unknown"

# A browser has one held connect, and its other sessions poll
pins: 35
transports: long-polling, callback-polling
alice handshakes
alice connects
alice ~> /meta/connect
bob shares the cookies of alice
bob handshakes
bob -> /meta/connect
bob <- /meta/connect ok {"advice": {"reconnect": "retry", "interval": 2000, "timeout": 30000, "multiple-clients": true}}
bob -> /meta/connect
bob <- /meta/connect ok {"advice": {"reconnect": "retry", "interval": 2000, "timeout": 30000, "multiple-clients": true}}
carol shares the cookies of alice
carol handshakes
carol -> /meta/connect
carol <- /meta/connect ok {"advice": {"reconnect": "retry", "interval": 2000, "timeout": 30000, "multiple-clients": true}}
alice is held
-- Alice's page goes away, and the next session that connects takes its place.
alice drops
bob ~> /meta/connect
carol -> /meta/connect
carol <- /meta/connect ok {"advice": {"reconnect": "retry", "interval": 2000, "timeout": 30000, "multiple-clients": true}}
bob is held

# When a held connect is answered, another one may be held
pins: 35
transports: long-polling, callback-polling
alice handshakes
alice subscribes to /browsers/free
alice connects
bob shares the cookies of alice
bob handshakes
bob connects
alice ~> /meta/connect
bob publishes "wake up" to /browsers/free
alice <~ /browsers/free {"data": "wake up"}
         /meta/connect ok
bob ~> /meta/connect
bob is held

# A session that has to poll gets its messages with the replies to its connects
transports: long-polling, callback-polling
alice handshakes
alice connects
alice ~> /meta/connect
bob shares the cookies of alice
bob handshakes
bob subscribes to /browsers/polls
carol handshakes
carol publishes "for bob" to /browsers/polls
bob -> /meta/connect
bob <- /browsers/polls {"data": "for bob"}
       /meta/connect ok

# Connects of other browsers are not counted
transports: long-polling, callback-polling
alice handshakes
alice connects
alice ~> /meta/connect
bob handshakes
bob connects
bob ~> /meta/connect
alice is held

# The interval of polling sessions is a setting
pins: 35
transports: long-polling, callback-polling
! multi_session_interval = 1234
alice handshakes
alice connects
alice ~> /meta/connect
bob shares the cookies of alice
bob handshakes
bob -> /meta/connect
bob <- /meta/connect ok {"advice": {"reconnect": "retry", "interval": 1234, "timeout": 30000, "multiple-clients": true}}

# With an interval of zero, the second session of a browser is refused
pins: 36
transports: long-polling, callback-polling
! multi_session_interval = 0
alice handshakes
alice connects
alice ~> /meta/connect
bob shares the cookies of alice
bob handshakes
bob -> /meta/connect
bob <- {"channel": "/meta/connect", "id": <text>, "successful": false,
        "advice": {"reconnect": "none", "interval": <integer>, "timeout": 30000, "multiple-clients": true}}
alice is held

# A browser may be allowed two held connects
pins: 37
transports: long-polling, callback-polling
! max_sessions_per_browser = 2
alice handshakes
alice connects
alice ~> /meta/connect
bob shares the cookies of alice
bob handshakes
bob connects
bob ~> /meta/connect
carol shares the cookies of alice
carol handshakes
carol -> /meta/connect
carol <- /meta/connect ok {"advice": {"reconnect": "retry", "interval": 2000, "timeout": 30000, "multiple-clients": true}}
alice is held
bob is held

# A browser may be allowed any number of held connects
pins: 37
transports: long-polling, callback-polling
! max_sessions_per_browser = -1
alice handshakes
alice connects
alice ~> /meta/connect
bob shares the cookies of alice
bob handshakes
bob connects
bob ~> /meta/connect
carol shares the cookies of alice
carol handshakes
carol connects
carol ~> /meta/connect
alice is held

# A browser may be allowed no held connect at all
pins: 37
transports: long-polling, callback-polling
! max_sessions_per_browser = 0
alice handshakes
alice -> /meta/connect
alice <- /meta/connect ok {"advice": {"reconnect": "retry", "interval": 2000, "timeout": 30000, "multiple-clients": true}}

# Sockets of one browser do not count against each other
pins: 37
transports: websocket
alice handshakes
alice connects
alice ~> /meta/connect
bob shares the cookies of alice
bob handshakes
bob connects
bob ~> /meta/connect
alice is held

# A reloaded page does not count as a second client
pins: 38
transports: long-polling, callback-polling
alice handshakes
alice connects
alice ~> /meta/connect
-- The same page again: the browser ends the old request and handshakes.
alice drops
alice handshakes
alice connects
alice ~> /meta/connect
alice is held

# A reloaded page that resumes its session does not count as a second client
pins: 38
transports: long-polling, callback-polling
alice handshakes
alice connects
alice ~> /meta/connect
alice drops
alice -> /meta/connect {"advice": {"timeout": 0}}
alice <- /meta/connect ok {"advice": {"reconnect": "retry", "interval": 0, "timeout": 30000}}
alice ~> /meta/connect
alice is held

# A connect that supersedes an older one of the same session is not counted twice
transports: long-polling, callback-polling
alice handshakes
alice connects
alice ~> /meta/connect {"id": "older"}
alice ~> /meta/connect {"id": "newer"}
alice <~ 409 /meta/connect error "409::connect_superseded" {"id": "older"}
bob shares the cookies of alice
bob handshakes
bob -> /meta/connect
bob <- /meta/connect ok {"advice": {"reconnect": "retry", "interval": 2000, "timeout": 30000, "multiple-clients": true}}
alice drops
bob ~> /meta/connect
