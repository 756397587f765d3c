-- The options of publishes and subscriptions, none of which the server ignores.

transports: long-polling, websocket

# A message that no destination takes reaches nobody, and unknown options are refused
alice takes /options/private
bob handshakes
bob -> /options/private {"data": "between us", "ext": {"delivery": {"destinations": [{"name": "joe/1"}]}}}
       /options/private {"data": 1, "ext": {"delivery": {"priorty": 9}}}
       /options/private {"data": 2, "ext": {"delivery": {"forceUpdate": "no"}}}
       /options/private {"data": 3, "ext": {"delivery": {"forceUpdate": true}}}
bob <- /options/private error "404:user.ptp.unknownDestination,client/joe/1:destination_unknown" {"ext": {"delivery": {"destinations": [{"name": "client/joe/1", "state": "ERROR", "errorCode": "user.ptp.unknownDestination"}]}}}
       /options/private error "400:user.publish,priorty:delivery_invalid"
       /options/private error "400:user.publish,forceUpdate:delivery_invalid"
       /options/private ok {"ext": {"delivery": {"state": "OK", "id": <text>, "rcvTimestamp": <text>}}}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /options/private {"data": 3, ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice disconnects

# A subscription with invalid options is refused
alice takes /options/all
alice -> /meta/subscribe {"subscription": "/options/some", "ext": {"delivery": {"filter": "data."}}}
         /meta/subscribe {"subscription": "/options/others", "ext": {"delivery": {"newestOnly": 1}}}
         /meta/subscribe {"subscription": "/options/past", "ext": {"delivery": {"history": {"entries": 5}}}}
alice <- /meta/subscribe error "400:user.illegalArgument,filter (a name is missing at character 6 of the filter):delivery_invalid" {"subscription": "/options/some"}
         /meta/subscribe error "400:user.illegalArgument,newestOnly:delivery_invalid" {"subscription": "/options/others"}
         /meta/subscribe error "400:user.illegalArgument,history:delivery_invalid" {"subscription": "/options/past"}
bob handshakes
bob publishes 1 to /options/some
bob publishes 2 to /options/all
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /options/all {"data": 2, ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice disconnects

# Properties arrive with their values unchanged
alice takes /options/properties
bob handshakes
bob -> /options/properties {"data": 1, "ext": {"delivery": {"properties": {"oneKey": "one", "twoKey": "two", "threeKey": 55, "fourKey": {"deep": [true, null, 1.5]}}}}}
bob <- /options/properties ok {"ext": {"delivery": {"state": "OK", "id": <text>, "rcvTimestamp": <text>}}}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /options/properties {"data": 1, "ext": {"delivery": {"properties": {"oneKey": "one", "twoKey": "two", "threeKey": 55, "fourKey": {"deep": [true, null, 1.5]}}, ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
alice disconnects

# An expired message is delivered late, unless forceDestroy is set, and leaves no dead letter
walter watches the dead letters
alice takes /options/lives under {"session": "lives/1", "dispatcherActive": false}
bob handshakes
bob -> /options/lives {"data": "late", "ext": {"delivery": {"expiration": {"lifeTime": 0}}}}
       /options/lives {"data": "never", "ext": {"delivery": {"expiration": {"lifeTime": 0, "forceDestroy": true}}}}
       /options/lives {"data": "in time", "ext": {"delivery": {"expiration": {"lifeTime": 3600000, "forceDestroy": true}}}}
bob <- 3 times /options/lives ok {...}
olga operates
olga sets "client/lives/1/?dispatcherActive" to "true"
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /options/lives {"data": "late", "ext": {"delivery": {"expiration": {"lifeTime": 0, "remainingLife": 0}, ...}}}
         /options/lives {"data": "in time", "ext": {"delivery": {"expiration": {"lifeTime": 3600000, "remainingLife": <1 to 3600000>}, ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
alice -> /meta/disconnect {"ext": {"ack": 2, "delivery": {"end": true}}}
alice <- /meta/disconnect ok
walter is held
walter leaves while waiting

# Who asked for verdicts is told where an error is explained, if there is documentation
! docs_url = "https://docs.example/"
alice takes /options/seen
bob handshakes
alice -> /meta/subscribe {"subscription": "/meta/none"}
         /options/seen {}
alice <- /meta/subscribe error "403:denied_by_security_policy:create_denied" {"subscription": "/meta/none", "ext": {"see": "https://docs.example/reference/error-codes/#403-create_denied"}}
         /options/seen error "400::data_missing" {"ext": {"see": "https://docs.example/reference/error-codes/#400-data_missing"}}
bob -> /options/seen {}
bob <- /options/seen error "400::data_missing" 
