-- Pages of other origins, as browsers announce them.

transports: long-polling

# The server's own origin needs no permission
alice -> /meta/handshake
    Origin: $server
alice <- /meta/handshake ok {"clientId": new $alice, ...}

# A foreign origin is refused
alice -> /meta/handshake
    Origin: http://elsewhere.example
alice <- 403
    Access-Control-Allow-Origin: absent
    {"successful": false, "error": "403:allow_origin:origin_denied"}
alice -> /meta/handshake
    Origin: null
alice <- 403 {"successful": false, "error": "403:allow_origin:origin_denied"}

# A JSONP request of a foreign origin is refused
transports: callback-polling
alice -> /meta/handshake
    Origin: http://elsewhere.example
alice <- 403

# A WebSocket upgrade of a foreign origin is refused
transports: websocket
alice -> UPGRADE /cometd
    Origin: http://elsewhere.example
alice <- refused 403
bob -> UPGRADE /cometd
    Origin: $server
bob <- 101

# A preflight of a foreign origin gets no permission
alice -> OPTIONS /cometd
    Origin: http://elsewhere.example
    Access-Control-Request-Method: POST
    Access-Control-Request-Headers: content-type
alice <- 200
    Access-Control-Allow-Origin: absent
    body:

# An allowed origin may send credentials
! allow_origin = ["http://elsewhere.example"]
alice -> OPTIONS /cometd
    Origin: http://elsewhere.example
    Access-Control-Request-Method: POST
    Access-Control-Request-Headers: content-type
alice <- 200
    Access-Control-Allow-Origin: http://elsewhere.example
    Access-Control-Allow-Credentials: true
    Access-Control-Allow-Methods: <text like .*POST.*>
    Access-Control-Allow-Headers: <text like .*[Cc]ontent-[Tt]ype.*>
    Vary: <text like .*Origin.*>
    body:
alice -> /meta/handshake
    Origin: http://elsewhere.example
alice <- 200
    Access-Control-Allow-Origin: http://elsewhere.example
    Access-Control-Allow-Credentials: true
    Vary: <text like .*Origin.*>
    /meta/handshake ok {"clientId": new $alice, ...}
alice -> /meta/handshake
    Origin: http://third.example
alice <- 403 {"successful": false, "error": "403:allow_origin:origin_denied"}

# An allowed origin may read the reply to a held connect
! allow_origin = ["http://elsewhere.example"]
! timeout = 500
alice handshakes
alice connects
alice -> /meta/connect
    Origin: http://elsewhere.example
alice <- 200
    Access-Control-Allow-Origin: http://elsewhere.example
    Access-Control-Allow-Credentials: true
    /meta/connect ok

# All origins can be allowed, for development
! allow_origin = ["*"]
alice -> /meta/handshake
    Origin: http://anywhere.example
alice <- 200
    Access-Control-Allow-Origin: <text like (\*|http://anywhere\.example)>
    /meta/handshake ok {"clientId": new $alice, ...}

# A JSONP request of a foreign page is refused even without an Origin header
transports: callback-polling
alice -> /meta/handshake
    Sec-Fetch-Site: cross-site
    Referer: http://elsewhere.example/page.html
alice <- 403
alice -> /meta/handshake
    Sec-Fetch-Site: cross-site
alice <- 403
alice -> /meta/handshake
    Sec-Fetch-Site: same-origin
alice <- /meta/handshake ok {"clientId": new $alice, ...}

# Another port is another origin
alice -> /meta/handshake
    Origin: http://127.0.0.1:1
alice <- 403 {"successful": false, "error": "403:allow_origin:origin_denied"}
