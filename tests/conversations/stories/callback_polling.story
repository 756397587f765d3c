-- callback-polling (JSONP) as a browser's script element sees it.

transports: callback-polling

# The response calls the function that the client named
alice -> GET /cometd?jsonp=My.call-back_1&message=%5B%7B%22channel%22%3A%22%2Fmeta%2Fhandshake%22%2C%22id%22%3A%221%22%2C%22supportedConnectionTypes%22%3A%5B%22callback-polling%22%5D%7D%5D
    Referer: $server/page.html
alice <- 200
    Content-Type: text/javascript;charset=UTF-8
    X-Content-Type-Options: nosniff
    body: /**/My.call-back_1([{<text>}])

# Without a name, the response calls jsonpcallback, as Bayeux specifies
alice -> GET /cometd?message=%5B%7B%22channel%22%3A%22%2Fmeta%2Fconnect%22%2C%22id%22%3A%221%22%7D%5D
    Referer: $server/page.html
alice <- 200
    body: /**/jsonpcallback([{<text>}])

# The callback parameter may have the name that Bayeux specifies
alice -> GET /cometd?jsonpcallback=f&message=%5B%7B%22channel%22%3A%22%2Fmeta%2Fconnect%22%2C%22id%22%3A%221%22%7D%5D
    Referer: $server/page.html
alice <- 200
    body: /**/f([{<text>}])

# The name of the callback parameter is a setting
! callback_parameter = "callback"
alice -> GET /cometd?callback=f&message=%5B%7B%22channel%22%3A%22%2Fmeta%2Fconnect%22%2C%22id%22%3A%221%22%7D%5D
    Referer: $server/page.html
alice <- 200
    body: /**/f([{<text>}])

# A callback name that could contain code is refused
alice -> GET /cometd?jsonp=alert(1)//&message=%5B%7B%22channel%22%3A%22%2Fmeta%2Fconnect%22%7D%5D
    Referer: $server/page.html
alice <- 400
    Content-Type: <text like (?!text/javascript).*>
alice -> GET /cometd?jsonp=%3Cscript%3E&message=%5B%7B%22channel%22%3A%22%2Fmeta%2Fconnect%22%7D%5D
    Referer: $server/page.html
alice <- 400
alice -> GET /cometd?jsonp=&message=%5B%7B%22channel%22%3A%22%2Fmeta%2Fconnect%22%7D%5D
    Referer: $server/page.html
alice <- 400
alice -> GET /cometd?jsonp=a%0Ab&message=%5B%7B%22channel%22%3A%22%2Fmeta%2Fconnect%22%7D%5D
    Referer: $server/page.html
alice <- 400
alice -> GET /cometd?jsonp=a%5B0%5D&message=%5B%7B%22channel%22%3A%22%2Fmeta%2Fconnect%22%7D%5D
    Referer: $server/page.html
alice <- 400

# A request with two callback names is refused
alice -> GET /cometd?jsonp=a&jsonp=b&message=%5B%7B%22channel%22%3A%22%2Fmeta%2Fconnect%22%7D%5D
    Referer: $server/page.html
alice <- 400

# A callback name may have at most 64 characters
alice -> GET /cometd?jsonp=a234567890b234567890c234567890d234567890e234567890f234567890g234&message=%5B%7B%22channel%22%3A%22%2Fmeta%2Fconnect%22%2C%22id%22%3A%221%22%7D%5D
    Referer: $server/page.html
alice <- 200
alice -> GET /cometd?jsonp=a234567890b234567890c234567890d234567890e234567890f234567890g2345&message=%5B%7B%22channel%22%3A%22%2Fmeta%2Fconnect%22%2C%22id%22%3A%221%22%7D%5D
    Referer: $server/page.html
alice <- 400

# The maximum length of a callback name is a setting
! callback_parameter_max_length = 3
alice -> GET /cometd?jsonp=abc&message=%5B%7B%22channel%22%3A%22%2Fmeta%2Fconnect%22%2C%22id%22%3A%221%22%7D%5D
    Referer: $server/page.html
alice <- 200
alice -> GET /cometd?jsonp=abcd&message=%5B%7B%22channel%22%3A%22%2Fmeta%2Fconnect%22%2C%22id%22%3A%221%22%7D%5D
    Referer: $server/page.html
alice <- 400

# Messages may be spread over several parameters
pins: 50
alice handshakes
-- An array, then an object.
alice -> GET /cometd?jsonp=f&message=%5B%7B%22channel%22%3A%22%2Fmeta%2Fsubscribe%22%2C%22subscription%22%3A%22%2Fjsonp%2Fa%22%2C%22id%22%3A%221%22%2C%22clientId%22%3A%22$alice%22%7D%5D&message=%7B%22channel%22%3A%22%2Fmeta%2Fdisconnect%22%2C%22id%22%3A%222%22%2C%22clientId%22%3A%22$alice%22%7D
    Referer: $server/page.html
alice <- 200
    body: <text like /\*\*/f\(\[\{.*/meta/subscribe.*\},\{.*/meta/disconnect.*\}\]\)>

# A request without a message is refused
alice -> GET /cometd?jsonp=f
alice <- 400
alice -> GET /cometd?jsonp=f&message=
alice <- 400

# A malformed message is refused
alice -> body: This is not JSON
alice <- 400
alice -> body: []
alice <- 400
alice -> body: [1]
alice <- 400

# Messages come only with replies to connects
pins: 25
alice handshakes
alice subscribes to /jsonp/connects
alice connects
bob handshakes
bob publishes 1 to /jsonp/connects
alice publishes 2 to /jsonp/elsewhere
alice subscribes to /jsonp/more
alice -> /meta/connect
alice <- /jsonp/connects {"data": 1}
         /meta/connect ok

# Callback-polling works on any path below the mount point
alice -> GET /cometd/connect?jsonp=f&message=%5B%7B%22channel%22%3A%22%2Fmeta%2Fconnect%22%2C%22id%22%3A%221%22%7D%5D
    Referer: $server/page.html
alice <- 200
    body: /**/f([{<text>}])

# With callback-polling disabled, a GET is refused
! transports = ["websocket", "long-polling"]
alice -> GET /cometd?jsonp=f&message=%5B%7B%22channel%22%3A%22%2Fmeta%2Fhandshake%22%7D%5D
    Referer: $server/page.html
alice <- 400 {"successful": false, "error": "400::transport_unknown"}

# With long-polling disabled, a POST is refused
transports: long-polling
! transports = ["websocket", "callback-polling"]
alice -> /meta/handshake
alice <- 400 {"successful": false, "error": "400::transport_unknown"}
