-- Point-to-point: messages to sessions and subjects, wherever these are.

transports: long-polling, websocket

# A message to a subject reaches all its sessions, and nobody else
alice takes /ptp/none under {"session": "pia/1"}
carol takes /ptp/none under {"session": "pia/2"}
dave takes /ptp/none under {"session": "pim/1"}
bob handshakes
bob -> /service/ptp {"data": {"destinations": ["client/pia"], "content": "hello"}}
bob <- /service/ptp ok {"ext": {"delivery": {"state": "OK", "rcvTimestamp": <text>, "destinations": [{"name": "client/pia", "state": "OK"}]}}}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /service/ptp {"data": "hello", "ext": {"delivery": {...}}}
         /meta/connect ok {"ext": {"ack": 2}}
carol -> /meta/connect {"ext": {"ack": 1}}
carol <- /service/ptp {"data": "hello", ...}
         /meta/connect ok {"ext": {"ack": 2}}
dave -> /meta/connect {"ext": {"ack": 1}, "advice": {"timeout": 0}}
dave <- /meta/connect ok {"ext": {"ack": 2}, ...}
alice -> /meta/disconnect {"ext": {"ack": 2, "delivery": {"end": true}}}
alice <- /meta/disconnect ok
carol -> /meta/disconnect {"ext": {"ack": 2, "delivery": {"end": true}}}
carol <- /meta/disconnect ok
dave -> /meta/disconnect {"ext": {"ack": 2, "delivery": {"end": true}}}
dave <- /meta/disconnect ok

# A message to a session reaches it alone, and its connect need not be subscribed to anything
alice takes /ptp/none under {"session": "pit/1"}
bob handshakes
alice ~> /meta/connect {"ext": {"ack": 1}}
bob -> /letters {"data": "hello", "ext": {"delivery": {"destinations": [{"name": "pit/1"}], "subscribable": false}}}
bob <- /letters ok {"ext": {"delivery": {"state": "OK", "rcvTimestamp": <text>, "destinations": [{"name": "client/pit/1", "state": "OK"}]}}}
alice <~ /letters {"data": "hello", "ext": {"delivery": {"sender": <text>, ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
alice -> /meta/disconnect {"ext": {"ack": 2, "delivery": {"end": true}}}
alice <- /meta/disconnect ok

# Who is not there is an error, unless the message may wait for a subject
bob handshakes
bob -> /service/ptp {"data": {"destinations": ["paul"], "content": 1}}
       /service/ptp {"data": {"destinations": [{"name": "paul/1", "forceQueuing": true}], "content": 2}}
       /service/ptp {"data": {"destinations": [{"name": "paul", "forceQueuing": true}], "content": 3}}
bob <- /service/ptp error "404:user.ptp.unknownDestination,client/paul:destination_unknown" {"ext": {...}}
       /service/ptp error "404:user.ptp.unknownDestination,client/paul/1:destination_unknown" {"ext": {...}}
       /service/ptp ok {"ext": {"delivery": {"destinations": [{"name": "client/paul", "state": "QUEUED"}], ...}}}
paul -> /meta/handshake {"ext": {"ack": true, "delivery": {"session": "paul/1"}}}
paul <- /meta/handshake ok {"clientId": new $paul, ...}
paul -> /meta/connect {"ext": {"ack": 0}}
paul <- /service/ptp {"data": 3, ...}
        /meta/connect ok {"ext": {"ack": 1}}
paul -> /meta/disconnect {"ext": {"ack": 1, "delivery": {"end": true}}}
paul <- /meta/disconnect ok

# Several destinations have an outcome each
alice takes /ptp/none under {"session": "pete/1"}
bob handshakes
bob -> /service/ptp {"data": {"destinations": ["pete", "nobody", {"name": "noone", "ignoreSilently": true}], "content": 1}}
bob <- /service/ptp ok {"ext": {"delivery": {"state": "OK", "rcvTimestamp": <text>, "destinations": [{"name": "client/pete", "state": "OK"}, {"name": "client/nobody", "state": "ERROR", "errorCode": "user.ptp.unknownDestination"}, {"name": "client/noone", "state": "IGNORED"}]}}}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /service/ptp {"data": 1, ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice -> /meta/disconnect {"ext": {"ack": 2, "delivery": {"end": true}}}
alice <- /meta/disconnect ok

# What a session leaves goes to the next one of its subject, and what was for the session alone is dead
walter watches the dead letters
alice takes /ptp/none under {"session": "pola/1"}
bob handshakes
bob -> /service/ptp {"data": {"destinations": ["pola"], "content": "for pola"}}
       /service/ptp {"data": {"destinations": ["pola/1"], "content": "for this session"}}
bob <- /service/ptp ok {...}
       /service/ptp ok {...}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /service/ptp {"data": "for pola", ...}
         /service/ptp {"data": "for this session", ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice -> /meta/disconnect {"ext": {"delivery": {"end": true}}}
alice <- /meta/disconnect ok
walter <~ /sys/deadMessage {"data": {"content": "for this session", "receiver": "client/pola/1", ...}, ...}
          /meta/connect ok {"ext": {"ack": 2}}
carol -> /meta/handshake {"ext": {"ack": true, "delivery": {"session": "pola/2"}}}
carol <- /meta/handshake ok {"clientId": new $carol, ...}
carol -> /meta/connect {"ext": {"ack": 0}}
carol <- /service/ptp {"data": "for pola", ...}
         /meta/connect ok {"ext": {"ack": 1}}
carol -> /meta/disconnect {"ext": {"ack": 1, "delivery": {"end": true}}}
carol <- /meta/disconnect ok
walter disconnects

# A session that takes no point-to-point is passed over
alice takes /ptp/none under {"session": "pax/1", "ptp": false}
bob handshakes
bob -> /service/ptp {"data": {"destinations": ["pax/1"], "content": 1}}
bob <- /service/ptp error "403:user.ptp.denied,client/pax/1:destination_denied" {"ext": {...}}
alice -> /meta/disconnect {"ext": {"ack": 1, "delivery": {"end": true}}}
alice <- /meta/disconnect ok

# A client that only acknowledges takes letters, too, if it has a subject
alice -> /meta/handshake {"ext": {"ack": true, "delivery": {"session": "polly"}}}
alice <- /meta/handshake ok {"clientId": new $alice, ...}
alice connects with ack
bob handshakes
alice ~> /meta/connect {"ext": {"ack": 1}}
bob -> /service/ptp {"data": {"destinations": ["polly"], "content": {"text": "hello"}}}
bob <- /service/ptp ok {...}
alice <~ /service/ptp {"data": {"text": "hello"}, ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice -> /meta/disconnect {"ext": {"ack": 2}}
alice <- /meta/disconnect ok
