-- Point-to-point messages to sessions and subjects, whether these are there or not.

transports: long-polling, websocket

# A message to a subject reaches all its sessions, and nobody else
alice takes /ptp/none under {"session": "pia/1"}
carol takes /ptp/none under {"session": "pia/2"}
dave takes /ptp/none under {"session": "pim/1"}
bob handshakes
bob -> /service/ptp {"data": {"destinations": ["client/pia"], "content": "hello"}}
bob <- /service/ptp ok {"ext": {"delivery": {"state": "OK", "id": <text>, "rcvTimestamp": <text>, "destinations": [{"name": "client/pia", "state": "OK"}]}}}
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

# A message to a session reaches it alone, without a subscription
alice takes /ptp/none under {"session": "pit/1"}
bob handshakes
alice ~> /meta/connect {"ext": {"ack": 1}}
bob -> /letters {"data": "hello", "ext": {"delivery": {"destinations": [{"name": "pit/1"}], "subscribable": false}}}
bob <- /letters ok {"ext": {"delivery": {"state": "OK", "id": <text>, "rcvTimestamp": <text>, "destinations": [{"name": "client/pit/1", "state": "OK"}]}}}
alice <~ /letters {"data": "hello", "ext": {"delivery": {"sender": <text>, ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
alice -> /meta/disconnect {"ext": {"ack": 2, "delivery": {"end": true}}}
alice <- /meta/disconnect ok

# An absent destination is an error, unless the message may wait for a subject
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

# Each of several destinations has its own outcome
alice takes /ptp/none under {"session": "pete/1"}
bob handshakes
bob -> /service/ptp {"data": {"destinations": ["pete", "nobody", {"name": "noone", "ignoreSilently": true}], "content": 1}}
bob <- /service/ptp ok {"ext": {"delivery": {"state": "OK", "id": <text>, "rcvTimestamp": <text>, "destinations": [{"name": "client/pete", "state": "OK"}, {"name": "client/nobody", "state": "ERROR", "errorCode": "user.ptp.unknownDestination"}, {"name": "client/noone", "state": "IGNORED"}]}}}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /service/ptp {"data": 1, ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice -> /meta/disconnect {"ext": {"ack": 2, "delivery": {"end": true}}}
alice <- /meta/disconnect ok

# An ended session's messages go to the next of its subject; those for it alone become dead letters
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

# A message that its session did not decide about goes to another session of its subject
walter watches the dead letters
alice -> /meta/handshake {"ext": {"ack": true, "delivery": {"session": "paula"}}}
alice <- /meta/handshake ok {"clientId": new $alice, ...}
alice connects with ack
bob handshakes
bob -> /service/ptp {"data": {"destinations": ["paula"], "content": "print this"}}
bob <- /service/ptp ok {...}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /service/ptp {"data": "print this", "ext": {"delivery": {"seq": new $seq, ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
-- There are no retries: the session ends.
alice -> /meta/connect {"ext": {"ack": 1, "delivery": {"verdicts": [{"seq": $seq, "errorCode": "communication.printer", "message": "no paper"}]}}}
alice <- /meta/connect error "402::session_unknown" {"advice": {"reconnect": "handshake", ...}}
carol -> /meta/handshake {"ext": {"ack": true, "delivery": {"session": "paula/2"}}}
carol <- /meta/handshake ok {"clientId": new $carol, ...}
carol -> /meta/connect {"ext": {"ack": 0}}
carol <- /service/ptp {"data": "print this", "ext": {"delivery": {"redelivered": 1, ...}}}
         /meta/connect ok {"ext": {"ack": 1}}
carol -> /meta/disconnect {"ext": {"ack": 1, "delivery": {"end": true}}}
carol <- /meta/disconnect ok
walter is held for 100 ms
walter leaves while waiting

# A message to a session that takes no point-to-point messages is refused
alice takes /ptp/none under {"session": "pax/1", "ptp": false}
bob handshakes
bob -> /service/ptp {"data": {"destinations": ["pax/1"], "content": 1}}
bob <- /service/ptp error "403:user.ptp.denied,client/pax/1:destination_denied" {"ext": {...}}
alice -> /meta/disconnect {"ext": {"ack": 1, "delivery": {"end": true}}}
alice <- /meta/disconnect ok

# A session with acks but without verdicts gets what is addressed to its subject
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

# A message to two destinations reaches each once, with its sender and the time of its receipt
alice takes /ptp/none under {"session": "tom/1"}
carol takes /ptp/none under {"session": "tim/1"}
bob -> /meta/handshake {"ext": {"delivery": {"session": "tell"}}}
bob <- /meta/handshake ok {"clientId": new $bob, "ext": {"delivery": {"session": {"name": new $sender, ...}, ...}}, ...}
bob -> /service/ptp {"data": {"destinations": ["tom", "tim/1"], "content": "hello"}}
bob <- /service/ptp ok {"ext": {"delivery": {"state": "OK", "id": <text>, "rcvTimestamp": new $received, "destinations": [{"name": "client/tom", "state": "OK"}, {"name": "client/tim/1", "state": "OK"}]}}}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /service/ptp {"data": "hello", "ext": {"delivery": {"sender": $sender, "rcvTimestamp": $received, ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
carol -> /meta/connect {"ext": {"ack": 1}}
carol <- /service/ptp {"data": "hello", "ext": {"delivery": {"sender": $sender, "rcvTimestamp": $received, ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
alice -> /meta/connect {"ext": {"ack": 2}, "advice": {"timeout": 0}}
alice <- /meta/connect ok {"ext": {"ack": 3}, ...}
alice -> /meta/disconnect {"ext": {"ack": 3, "delivery": {"end": true}}}
alice <- /meta/disconnect ok
carol -> /meta/disconnect {"ext": {"ack": 2, "delivery": {"end": true}}}
carol <- /meta/disconnect ok

# A message to some sessions of a subject reaches these alone
ann takes /ptp/none under {"session": "five/1"}
ben takes /ptp/none under {"session": "five/2"}
cat takes /ptp/none under {"session": "five/3"}
bob handshakes
bob -> /service/ptp {"data": {"destinations": ["five/3"], "content": "to the third"}}
       /service/ptp {"data": {"destinations": ["five/3", "five/1"], "content": "to two"}}
bob <- /service/ptp ok {...}
       /service/ptp ok {...}
ann -> /meta/connect {"ext": {"ack": 1}}
ann <- /service/ptp {"data": "to two", ...}
       /meta/connect ok {"ext": {"ack": 2}}
ben -> /meta/connect {"ext": {"ack": 1}, "advice": {"timeout": 0}}
ben <- /meta/connect ok {"ext": {"ack": 2}, ...}
cat -> /meta/connect {"ext": {"ack": 1}}
cat <- /service/ptp {"data": "to the third", ...}
       /service/ptp {"data": "to two", ...}
       /meta/connect ok {"ext": {"ack": 2}}
ann -> /meta/disconnect {"ext": {"ack": 2, "delivery": {"end": true}}}
ann <- /meta/disconnect ok
ben -> /meta/disconnect {"ext": {"ack": 2, "delivery": {"end": true}}}
ben <- /meta/disconnect ok
cat -> /meta/disconnect {"ext": {"ack": 2, "delivery": {"end": true}}}
cat <- /meta/disconnect ok

# Subscribers also get messages that are addressed to others, unless these are not subscribable
alice takes /ptp/none under {"session": "open/1"}
carol takes /ptp/heard
bob handshakes
bob -> /ptp/heard {"data": "closed", "ext": {"delivery": {"destinations": ["open"], "subscribable": false}}}
       /ptp/heard {"data": "open", "ext": {"delivery": {"destinations": ["open"]}}}
bob <- /ptp/heard ok {...}
       /ptp/heard ok {...}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /ptp/heard {"data": "closed", ...}
         /ptp/heard {"data": "open", ...}
         /meta/connect ok {"ext": {"ack": 2}}
carol -> /meta/connect {"ext": {"ack": 1}}
carol <- /ptp/heard {"data": "open", ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice -> /meta/disconnect {"ext": {"ack": 2, "delivery": {"end": true}}}
alice <- /meta/disconnect ok
carol disconnects

# A message that its destination cannot take is refused, whether or not a client is connected
-- The first session takes one message, the second none, and the third is not there.
alice takes /ptp/none under {"session": "full/1", "queue": {"maxEntries": 1}}
carol takes /ptp/none under {"session": "full/2", "ptp": false}
bob handshakes
bob -> /service/ptp {"data": {"destinations": ["full/1"], "content": "first"}}
       /service/ptp {"data": {"destinations": ["full/1"], "content": "second"}}
       /service/ptp {"data": {"destinations": [{"name": "full/1", "forceQueuing": true}], "content": "third"}}
       /service/ptp {"data": {"destinations": [{"name": "full/2", "forceQueuing": true}], "content": "fourth"}}
       /service/ptp {"data": {"destinations": [{"name": "full/3", "forceQueuing": true}], "content": "fifth"}}
bob <- /service/ptp ok {...}
       /service/ptp error "507:resource.overflow.queue.entries,client/full/1:destination_full" {...}
       /service/ptp error "507:resource.overflow.queue.entries,client/full/1:destination_full" {...}
       /service/ptp error "403:user.ptp.denied,client/full/2:destination_denied" {...}
       /service/ptp error "404:user.ptp.unknownDestination,client/full/3:destination_unknown" {...}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /service/ptp {"data": "first", ...}
         /meta/connect ok {"ext": {"ack": 2}}
-- The same while the first session has no client.
alice -> /meta/disconnect {"ext": {"ack": 2}}
alice <- /meta/disconnect ok
bob -> /service/ptp {"data": {"destinations": ["full/1"], "content": "sixth"}}
       /service/ptp {"data": {"destinations": ["full/1"], "content": "seventh"}}
bob <- /service/ptp ok {...}
       /service/ptp error "507:resource.overflow.queue.entries,client/full/1:destination_full" {...}
-- Neither the new session nor the one that takes none finds any of these messages.
dora takes /ptp/none under {"session": "full/3"}
dora -> /meta/connect {"ext": {"ack": 1}, "advice": {"timeout": 0}}
dora <- /meta/connect ok {"ext": {"ack": 2}, ...}
carol -> /meta/connect {"ext": {"ack": 1}, "advice": {"timeout": 0}}
carol <- /meta/connect ok {"ext": {"ack": 2}, ...}
alice -> /meta/handshake {"ext": {"ack": true, "delivery": {"session": "full/1"}}}
alice <- /meta/handshake ok {"clientId": new $alice, ...}
alice -> /meta/connect {"ext": {"ack": 0}}
alice <- /service/ptp {"data": "sixth", ...}
         /meta/connect ok {"ext": {"ack": 1}}
alice -> /meta/disconnect {"ext": {"ack": 1, "delivery": {"end": true}}}
alice <- /meta/disconnect ok
carol -> /meta/disconnect {"ext": {"ack": 2, "delivery": {"end": true}}}
carol <- /meta/disconnect ok
dora -> /meta/disconnect {"ext": {"ack": 2, "delivery": {"end": true}}}
dora <- /meta/disconnect ok

# A message that a session has no room for waits in the subject queue, or is refused if that is full
! max_subject_queue = 2
alice takes /ptp/none under {"session": "room/1", "queue": {"maxEntries": 2}}
alice -> /meta/disconnect {"ext": {"ack": 1}}
alice <- /meta/disconnect ok
bob handshakes
bob -> /service/ptp {"data": {"destinations": ["room"], "content": 1}}
       /service/ptp {"data": {"destinations": ["room"], "content": 2}}
       /service/ptp {"data": {"destinations": ["room"], "content": 3}}
       /service/ptp {"data": {"destinations": ["room"], "content": 4}}
       /service/ptp {"data": {"destinations": ["room"], "content": 5}}
bob <- /service/ptp ok {"ext": {"delivery": {"destinations": [{"name": "client/room", "state": "OK"}], ...}}}
       /service/ptp ok {"ext": {"delivery": {"destinations": [{"name": "client/room", "state": "OK"}], ...}}}
       /service/ptp ok {"ext": {"delivery": {"destinations": [{"name": "client/room", "state": "QUEUED"}], ...}}}
       /service/ptp ok {"ext": {"delivery": {"destinations": [{"name": "client/room", "state": "QUEUED"}], ...}}}
       /service/ptp error "507:resource.overflow.queue.entries,client/room:destination_full" {...}
alice -> /meta/handshake {"ext": {"ack": true, "delivery": {"session": "room/1", "queue": {"maxEntries": 2}}}}
alice <- /meta/handshake ok {"clientId": new $alice, ...}
alice -> /meta/connect {"ext": {"ack": 0}}
alice <- /service/ptp {"data": 1, ...}
         /service/ptp {"data": 2, ...}
         /meta/connect ok {"ext": {"ack": 1}}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /service/ptp {"data": 3, ...}
         /service/ptp {"data": 4, ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice -> /meta/disconnect {"ext": {"ack": 2, "delivery": {"end": true}}}
alice <- /meta/disconnect ok

# A reply that is addressed to the sender of a message reaches that sender alone, once
sara takes /ptp/none under {"session": "clock/1"}
alice -> /meta/handshake {"ext": {"ack": true, "delivery": {"session": "asking"}}}
alice <- /meta/handshake ok {"clientId": new $alice, "ext": {"delivery": {"session": {"name": new $asker, ...}, ...}, ...}, ...}
alice connects with ack
alice -> /service/ptp {"data": {"destinations": ["clock"], "content": "what time is it?"}}
alice <- /service/ptp ok {...}
alice ~> /meta/connect {"ext": {"ack": 1}}
sara -> /meta/connect {"ext": {"ack": 1}}
sara <- /service/ptp {"data": "what time is it?", "ext": {"delivery": {"sender": $asker, ...}}}
        /meta/connect ok {"ext": {"ack": 2}}
sara -> /service/ptp {"data": {"destinations": [$asker], "content": "noon"}}
sara <- /service/ptp ok {...}
alice <~ /service/ptp {"data": "noon", "ext": {"delivery": {"sender": "client/clock/1", ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
alice ~> /meta/connect {"ext": {"ack": 2}}
alice is held
sara -> /meta/disconnect {"ext": {"ack": 2, "delivery": {"end": true}}}
sara <- /meta/disconnect ok
alice leaves while waiting

# The sender of an event can be addressed while its session lives, also if it has no subject
sara takes /ptp/none under {"session": "oracle/1"}
bob -> /meta/handshake
bob <- /meta/handshake ok {"clientId": new $bob, ...}
bob -> /service/ptp {"data": {"destinations": ["oracle/1"], "content": "who am I?"}}
bob <- /service/ptp ok {...}
sara -> /meta/connect {"ext": {"ack": 1}}
sara <- /service/ptp {"data": "who am I?", "ext": {"delivery": {"sender": new $asker, ...}}}
        /meta/connect ok {"ext": {"ack": 2}}
sara -> /service/ptp {"data": {"destinations": [$asker], "content": "a guest"}}
sara <- /service/ptp ok {...}
on long-polling:
    bob -> /meta/connect
    bob <- /service/ptp {"data": "a guest"}
           /meta/connect ok
on websocket:
    bob <- /service/ptp {"data": "a guest"}
bob disconnects
sara -> /service/ptp {"data": {"destinations": [$asker], "content": "anybody there?"}}
sara <- /service/ptp error <text like 404:user.ptp.unknownDestination,client/anonymous/-.*:destination_unknown> {"ext": {...}}
sara -> /meta/disconnect {"ext": {"ack": 2, "delivery": {"end": true}}}
sara <- /meta/disconnect ok

# A message that an extension drops reaches no destination
! extension = ["tests.conversations.policies:measuring"]
alice takes /ptp/none under {"session": "measured/1"}
bob handshakes
bob -> /ptp/words {"data": "much too long", "ext": {"delivery": {"destinations": ["measured"]}}}
       /ptp/words {"data": "odd", "ext": {"delivery": {"destinations": ["measured"]}}}
       /ptp/words {"data": "just right", "ext": {"delivery": {"destinations": ["measured"]}}}
bob <- /ptp/words error "404::message_deleted"
       /ptp/words error "500::server_fault"
       /ptp/words ok {...}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /ptp/words {"data": "just right", ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice -> /meta/disconnect {"ext": {"ack": 2, "delivery": {"end": true}}}
alice <- /meta/disconnect ok

# With ptp_create_session, a message waits for a session that does not exist
transports: long-polling, websocket
! ptp_create_session = true
bob handshakes
bob -> /service/ptp {"data": {"destinations": ["puck/3"], "content": 1}}
       /service/ptp {"data": {"destinations": [{"name": "puck/3", "forceQueuing": true}], "content": 2}}
       /service/ptp {"data": {"destinations": [{"name": "puck", "forceQueuing": true}], "content": 3}}
       /service/ptp {"data": {"destinations": ["puck/3"], "content": 4}}
bob <- /service/ptp error "404:user.ptp.unknownDestination,client/puck/3:destination_unknown" {"ext": {...}}
       /service/ptp ok {"ext": {"delivery": {"destinations": [{"name": "client/puck/3", "state": "QUEUED"}], ...}}}
       /service/ptp ok {"ext": {"delivery": {"destinations": [{"name": "client/puck", "state": "QUEUED"}], ...}}}
       /service/ptp ok {"ext": {"delivery": {"destinations": [{"name": "client/puck/3", "state": "QUEUED"}], ...}}}
puck -> /meta/handshake {"ext": {"ack": true, "delivery": {"session": "puck/3"}}}
puck <- /meta/handshake ok {"clientId": new $puck, ...}
puck -> /meta/connect {"ext": {"ack": 0}}
puck <- /service/ptp {"data": 2, ...}
        /service/ptp {"data": 3, ...}
        /service/ptp {"data": 4, ...}
        /meta/connect ok {"ext": {"ack": 1}}
puck -> /meta/disconnect {"ext": {"ack": 1, "delivery": {"end": true}}}
puck <- /meta/disconnect ok

# An unclaimed session's messages become dead letters if its client takes no point-to-point messages
transports: long-polling, websocket
! ptp_create_session = true
walter watches the dead letters
bob handshakes
bob -> /service/ptp {"data": {"destinations": [{"name": "peaseblossom/4", "forceQueuing": true}], "content": "hello"}}
bob <- /service/ptp ok {...}
puck -> /meta/handshake {"ext": {"ack": true, "delivery": {"session": "peaseblossom/4", "ptp": false}}}
puck <- /meta/handshake ok {"clientId": new $puck, "ext": {"delivery": {"waiting": 0, ...}, ...}, ...}
walter <~ /sys/deadMessage {"data": {"content": "hello", "receiver": "client/peaseblossom/4", "errorCode": "user.ptp.denied", ...}, ...}
          /meta/connect ok {"ext": {"ack": 2}}
puck -> /meta/disconnect {"ext": {"delivery": {"end": true}}}
puck <- /meta/disconnect ok
