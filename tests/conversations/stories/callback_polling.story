-- callback-polling (JSONP) as it looks to a browser's script element.

transports: callback-polling

# The answer is a call of the function that the client named
alice -> GET /cometd?jsonp=My.call-back_1&message=%5B%7B%22channel%22%3A%22%2Fmeta%2Fhandshake%22%2C%22id%22%3A%221%22%2C%22supportedConnectionTypes%22%3A%5B%22callback-polling%22%5D%7D%5D
    Referer: $server/page.html
alice <- 200
    Content-Type: text/javascript;charset=UTF-8
    X-Content-Type-Options: nosniff
    body: /**/My.call-back_1([{<text>}])

# Without a name the function is the one of the protocol's text
alice -> GET /cometd?message=%5B%7B%22channel%22%3A%22%2Fmeta%2Fconnect%22%2C%22id%22%3A%221%22%7D%5D
    Referer: $server/page.html
alice <- 200
    body: /**/jsonpcallback([{<text>}])

# The parameter's name in the protocol's text works too
alice -> GET /cometd?jsonpcallback=f&message=%5B%7B%22channel%22%3A%22%2Fmeta%2Fconnect%22%2C%22id%22%3A%221%22%7D%5D
    Referer: $server/page.html
alice <- 200
    body: /**/f([{<text>}])

# The parameter's name is a setting
! callback_parameter = "callback"
alice -> GET /cometd?callback=f&message=%5B%7B%22channel%22%3A%22%2Fmeta%2Fconnect%22%2C%22id%22%3A%221%22%7D%5D
    Referer: $server/page.html
alice <- 200
    body: /**/f([{<text>}])

# Names that could be more than a name are refused
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

# Two names are refused
alice -> GET /cometd?jsonp=a&jsonp=b&message=%5B%7B%22channel%22%3A%22%2Fmeta%2Fconnect%22%7D%5D
    Referer: $server/page.html
alice <- 400

# A name may have 64 characters and no more
alice -> GET /cometd?jsonp=a234567890b234567890c234567890d234567890e234567890f234567890g234&message=%5B%7B%22channel%22%3A%22%2Fmeta%2Fconnect%22%2C%22id%22%3A%221%22%7D%5D
    Referer: $server/page.html
alice <- 200
alice -> GET /cometd?jsonp=a234567890b234567890c234567890d234567890e234567890f234567890g2345&message=%5B%7B%22channel%22%3A%22%2Fmeta%2Fconnect%22%2C%22id%22%3A%221%22%7D%5D
    Referer: $server/page.html
alice <- 400

# The length of a name is a setting
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

# Any path below the mount point will do
alice -> GET /cometd/connect?jsonp=f&message=%5B%7B%22channel%22%3A%22%2Fmeta%2Fconnect%22%2C%22id%22%3A%221%22%7D%5D
    Referer: $server/page.html
alice <- 200
    body: /**/f([{<text>}])

# Where callback-polling is switched off a GET is refused
! transports = ["websocket", "long-polling"]
alice -> GET /cometd?jsonp=f&message=%5B%7B%22channel%22%3A%22%2Fmeta%2Fhandshake%22%7D%5D
    Referer: $server/page.html
alice <- 400 {"successful": false, "error": "400::transport_unknown"}

# Where long-polling is switched off a POST is refused
transports: long-polling
! transports = ["websocket", "callback-polling"]
alice -> /meta/handshake
alice <- 400 {"successful": false, "error": "400::transport_unknown"}
