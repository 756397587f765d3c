-- The HTTP around the messages: methods, paths, bodies, content types, and the status of malformed
-- requests. Messages that fail are always answered with 200.

transports: long-polling

# Any path below the mount point works, because clients append the message type
pins: 51
alice -> POST /cometd/handshake
    /meta/handshake
alice <- /meta/handshake ok {"clientId": new $alice, ...}
alice -> POST /cometd/connect
    /meta/connect
alice <- /meta/connect ok
alice -> POST /cometd/
    /meta/subscribe {"subscription": "/envelope/paths"}
alice <- /meta/subscribe ok
alice -> POST /cometd
    /meta/unsubscribe {"subscription": "/envelope/paths"}
alice <- /meta/unsubscribe ok
alice -> POST /cometd/some/other/suffix
    /service/echo {"data": 1}
alice <- /service/echo ok
alice -> POST /bayeux/disconnect
    /meta/disconnect
alice <- /meta/disconnect ok

# A plain GET is answered with 400
pins: 1
alice -> GET /cometd
alice <- 400 {"successful": false, "error": "400:no page but where clients connect by POST or WebSocket:transport_unknown"}
alice -> GET /cometd/handshake
alice <- 400 {"successful": false, "error": "400:no page but where clients connect by POST or WebSocket:transport_unknown"}

# HTTP methods that no transport uses are answered with 400
alice -> PUT /cometd
    /meta/handshake
alice <- 400 {"successful": false, "error": "400:clients connect by POST or WebSocket:transport_unknown"}
alice -> DELETE /cometd
alice <- 400 {"successful": false, "error": "400:clients connect by POST or WebSocket:transport_unknown"}
alice -> PATCH /cometd
    /meta/handshake
alice <- 400 {"successful": false, "error": "400:clients connect by POST or WebSocket:transport_unknown"}

# An OPTIONS request gets an empty response
alice -> OPTIONS /cometd
alice <- 200
    Access-Control-Allow-Origin: absent
    body:

# A single object counts as an array of one
pins: 42
transports: long-polling, websocket, callback-polling
alice -> body: {"channel": "/meta/handshake", "id": "1", "version": "1.0", "supportedConnectionTypes": ["$transport"]}
alice <- {"channel": "/meta/handshake", "id": "1", "successful": true, ...}

# A body that is not JSON is answered with 400
pins: 2
alice -> body: This is not JSON
alice <- 400 {"successful": false, "error": "400:not JSON at byte 0:request_malformed"}
alice -> body: {"channel": /meta/handshake}
alice <- 400 {"successful": false, "error": "400:not JSON at byte 12:request_malformed"}

# A truncated array is answered with 400
pins: 3
alice -> body: [{"channel": "/meta/handshake", "version": "1.0"
alice <- 400 {"successful": false, "error": "400:not JSON at byte 48:request_malformed"}
alice -> body: [{"channel": "/meta/handshake", "version": "1.0"},
alice <- 400 {"successful": false, "error": "400:not JSON at byte 50:request_malformed"}
alice -> body: [
alice <- 400 {"successful": false, "error": "400:not JSON at byte 1:request_malformed"}

# More than one document is answered with 400
alice -> body: [{"channel": "/meta/handshake"}][{"channel": "/meta/connect"}]
alice <- 400 {"successful": false, "error": "400:not JSON at byte 32:request_malformed"}

# A request without messages is answered with 400
alice -> POST /cometd
alice <- 400 {"successful": false, "error": "400:an empty body:request_malformed"}
alice -> body: []
alice <- 400 {"successful": false, "error": "400:no messages:request_malformed"}
alice -> body:
alice <- 400 {"successful": false, "error": "400:an empty body:request_malformed"}

# A body whose messages are not objects is answered with 400
alice -> body: [1]
alice <- 400 {"successful": false, "error": "400:message 1 is not an object:request_malformed"}
alice -> body: ["/meta/handshake"]
alice <- 400 {"successful": false, "error": "400:message 1 is not an object:request_malformed"}
alice -> body: [[{"channel": "/meta/handshake"}]]
alice <- 400 {"successful": false, "error": "400:message 1 is not an object:request_malformed"}
alice -> body: [null]
alice <- 400 {"successful": false, "error": "400:message 1 is not an object:request_malformed"}
alice -> body: null
alice <- 400 {"successful": false, "error": "400:message 1 is not an object:request_malformed"}
alice -> body: "text"
alice <- 400 {"successful": false, "error": "400:message 1 is not an object:request_malformed"}

# A request with one element that is not a message is refused as a whole
alice handshakes
bob handshakes
bob subscribes to /envelope/spoilt
alice -> body: [{"channel": "/envelope/spoilt", "clientId": "$alice", "data": 1}, 2]
alice <- 400 {"successful": false, "error": "400:message 2 is not an object:request_malformed"}
bob connects

# JSON with NaN, Infinity or invalid UTF-8 is answered with 400
alice -> body: [{"channel": "/meta/handshake", "ext": NaN}]
alice <- 400 {"successful": false, "error": "400:NaN is not JSON:request_malformed"}
alice -> body: [{"channel": "/meta/handshake", "ext": Infinity}]
alice <- 400 {"successful": false, "error": "400:Infinity is not JSON:request_malformed"}
-- [{"x":"<ff>"}] is not UTF-8
alice -> body in hex: 5b7b2278223a22ff227d5d
alice <- 400 {"successful": false, "error": "400:not UTF-8 at byte 7:request_malformed"}

# The content type of a request is ignored
pins: 41
alice -> POST /cometd
    /meta/handshake {"supportedConnectionTypes": ["long-polling"]}
alice <- /meta/handshake ok {"clientId": new $alice, ...}
alice -> POST /cometd
    Content-Type: text/plain
    /meta/connect
alice <- /meta/connect ok
alice -> POST /cometd
    Content-Type: text/json
    /meta/subscribe {"subscription": "/envelope/types"}
alice <- /meta/subscribe ok
alice -> POST /cometd
    Content-Type: application/octet-stream
    /meta/unsubscribe {"subscription": "/envelope/types"}
alice <- /meta/unsubscribe ok

# The charset of a request is honoured
pins: 41
bob handshakes
bob subscribes to /envelope/greece
alice handshakes
alice -> POST /cometd
    Content-Type: application/json;charset=ISO-8859-7
    body in iso-8859-7: [{"channel": "/envelope/greece", "id": "9", "clientId": "$alice", "data": "Ελλάδα"}]
alice <- {"channel": "/envelope/greece", "id": "9", "successful": true}
bob -> /meta/connect
bob <- /envelope/greece {"data": "Ελλάδα"}
       /meta/connect ok

# Messages may be sent as a form
alice -> POST /cometd
    Content-Type: application/x-www-form-urlencoded
    body: message=%5B%7B%22channel%22%3A%22%2Fmeta%2Fhandshake%22%2C%22id%22%3A%221%22%2C%22supportedConnectionTypes%22%3A%5B%22long-polling%22%5D%7D%5D
alice <- {"channel": "/meta/handshake", "id": "1", "successful": true, "clientId": new $alice, ...}
-- Two values of the form, with an object each.
alice -> POST /cometd
    Content-Type: application/x-www-form-urlencoded;charset=UTF-8
    body: message=%7B%22channel%22%3A%22%2Fmeta%2Fconnect%22%2C%22id%22%3A%222%22%2C%22clientId%22%3A%22$alice%22%7D&message=%7B%22channel%22%3A%22%2Fmeta%2Fdisconnect%22%2C%22id%22%3A%223%22%2C%22clientId%22%3A%22$alice%22%7D
alice <- {"channel": "/meta/connect", "id": "2", "successful": true}
         {"channel": "/meta/disconnect", "id": "3", "successful": true}

# A compressed request is decompressed
alice -> /meta/handshake
    Content-Encoding: gzip
alice <- /meta/handshake ok {"clientId": new $alice, ...}

# A request with an unknown charset, encoding or media type is refused with 415
alice -> POST /cometd
    Content-Type: application/json;charset=klingon
    /meta/handshake
alice <- 415 {"successful": false, "error": "415::media_type_unsupported"}
alice -> POST /cometd
    Content-Encoding: brotli-of-the-future
    /meta/handshake
alice <- 415 {"successful": false, "error": "415::media_type_unsupported"}
alice -> POST /cometd
    Content-Type: multipart/form-data; boundary=x
    body: --x--
alice <- 415 {"successful": false, "error": "415::media_type_unsupported"}

# Responses are JSON and set nothing but the browser's cookie
alice -> /meta/handshake
alice <- 200
    Content-Type: <text like application/json(;charset=UTF-8)?>
    /meta/handshake ok {"clientId": new $alice, ...}
alice -> /meta/connect
alice <- 200
    Content-Type: <text like application/json(;charset=UTF-8)?>
    Set-Cookie: absent
    /meta/connect ok

# Messages that fail are answered with 200
transports: long-polling, callback-polling
alice -> /nowhere {"data": 1}
alice <- 200 /nowhere error "402:send the clientId:client_id_missing"
alice -> {"channel": "no slash", "id": "1"}
alice <- 200 {"channel": "no slash", "id": "1", "successful": false, "error": "405::channel_invalid"}

# Paths outside the mount points are answered with 404
transports: long-polling
alice -> POST /elsewhere
    /meta/handshake
alice <- 404
alice -> POST /cometdx
    /meta/handshake
alice <- 404

# A body that contradicts its headers is answered with 400
alice -> POST /cometd
    Content-Encoding: gzip
    /meta/handshake
alice <- 400 {"successful": false, "error": "400:a body that is not in its Content-Encoding:request_malformed"}
alice -> POST /cometd
    Content-Type: application/json;charset=iso-8859-7
    body in hex: 5b7b2261223a22ae22fe
alice <- 400 {"successful": false, "error": "400:not in the charset of its Content-Type at byte 7:request_malformed"}

# The error says where a body is no JSON, and what it is instead
alice -> body: [{"channel": "/a"}, {"x" 1}]
alice <- 400 {"successful": false, "error": "400:not JSON at byte 25:request_malformed"}
alice -> body: {"ελ": nul}
alice <- 400 {"successful": false, "error": "400:not JSON at byte 9:request_malformed"}
alice -> body: [{}, {"x": "\ud800"}, 5]
alice <- 400 {"successful": false, "error": "400:message 3 is not an object:request_malformed"}
-- Without its content type.
alice -> body: message=%5B%7B%7D%5D
alice <- 400 {"successful": false, "error": "400:a form where JSON was expected:request_malformed"}
-- As `curl --data` sends it.
alice -> POST /cometd
    Content-Type: application/x-www-form-urlencoded
    /meta/handshake
alice <- 400 {"successful": false, "error": "400:JSON with the Content-Type of a form:request_malformed"}

# A form without messages is answered with 400
alice -> POST /cometd
    Content-Type: application/x-www-form-urlencoded
    body: other=1
alice <- 400 {"successful": false, "error": "400:no field named message:request_malformed"}
