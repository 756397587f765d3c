-- Receivers refuse single messages with a code. The message becomes a dead letter, which operators
-- see on /sys/deadMessage; what else happens depends on the code.

transports: long-polling, websocket

# A refused message does not end the session, whatever the code
-- The receiver watches the dead letters itself, as in xmlBlaster's own test.
alice -> /meta/handshake {"ext": {"ack": true, "delivery": true, "authentication": {"token": $operator}}}
alice <- /meta/handshake ok {"clientId": new $alice, "ext": {"ack": true, "delivery": {"retries": 0, ...}}, ...}
alice -> /meta/subscribe {"subscription": ["/s01/a", "/s01/b", "/s01/c", "/s01/n", "/sys/deadMessage"]}
alice <- /meta/subscribe ok
alice -> /meta/connect {"ext": {"ack": 0}}
alice <- /meta/connect ok {"ext": {"ack": 1}}
bob handshakes
-- A code for receivers.
alice ~> /meta/connect {"ext": {"ack": 1}}
bob publishes "A" to /s01/a
alice <~ /s01/a {"data": "A", "ext": {"delivery": {"seq": 1, ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
alice -> /meta/connect {"ext": {"ack": 2, "delivery": {"verdicts": [{"seq": 1, "errorCode": "user.update.error", "message": "no"}]}}}
alice <- /sys/deadMessage {"data": {"content": "A", "errorCode": "user.update.error", ...}, ...}
         /meta/connect ok {"ext": {"ack": 3}}
alice ~> /meta/connect {"ext": {"ack": 3}}
bob publishes "N1" to /s01/n
alice <~ /s01/n {"data": "N1", "ext": {"delivery": {"seq": 3, ...}}}
         /meta/connect ok {"ext": {"ack": 4}}
-- A code that receivers may not use.
alice ~> /meta/connect {"ext": {"ack": 4}}
bob publishes "B" to /s01/b
alice <~ /s01/b {"data": "B", "ext": {"delivery": {"seq": 4, ...}}}
         /meta/connect ok {"ext": {"ack": 5}}
alice -> /meta/connect {"ext": {"ack": 5, "delivery": {"verdicts": [{"seq": 4, "errorCode": "resource.configuration.pluginFailed", "message": "no"}]}}}
alice <- /sys/deadMessage {"data": {"content": "B", "errorCode": "user.update.internalError", ...}, ...}
         /meta/connect ok {"ext": {"ack": 6}}
alice ~> /meta/connect {"ext": {"ack": 6}}
bob publishes "N2" to /s01/n
alice <~ /s01/n {"data": "N2", "ext": {"delivery": {"seq": 6, ...}}}
         /meta/connect ok {"ext": {"ack": 7}}
-- No code at all.
alice ~> /meta/connect {"ext": {"ack": 7}}
bob publishes "C" to /s01/c
alice <~ /s01/c {"data": "C", "ext": {"delivery": {"seq": 7, ...}}}
         /meta/connect ok {"ext": {"ack": 8}}
alice -> /meta/connect {"ext": {"ack": 8, "delivery": {"verdicts": [{"seq": 7, "message": "null pointer"}]}}}
alice <- /sys/deadMessage {"data": {"content": "C", "errorCode": "user.update.internalError", ...}, ...}
         /meta/connect ok {"ext": {"ack": 9}}
alice ~> /meta/connect {"ext": {"ack": 9}}
bob publishes "N3" to /s01/n
alice <~ /s01/n {"data": "N3", "ext": {"delivery": {"seq": 9, ...}}}
         /meta/connect ok {"ext": {"ack": 10}}
-- Nothing comes twice, and it is still the same session.
alice ~> /meta/connect {"ext": {"ack": 10}}
alice is held for 100 ms
alice leaves while waiting

# A receiver's own code is kept as it was sent, and operators find letters by it
walter watches the dead letters
alice takes /s01/own
bob handshakes
bob publishes "page 1" to /s01/own
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /s01/own {"data": "page 1", ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice ~> /meta/connect {"ext": {"ack": 2, "delivery": {"verdicts": [{"seq": 1, "errorCode": "user.paper.empty", "message": "tray 2"}]}}}
walter <~ /sys/deadMessage {"data": {"content": "page 1", "errorCode": "user.paper.empty", "reason": <text like .*tray 2>, "attempts": [{"outcome": "user.paper.empty", "text": "tray 2", ...}], ...}, ...}
          /meta/connect ok {"ext": {"ack": 2}}
olga -> GET /admin/api/v1/dead-letters?code=user.paper.empty
    Authorization: Bearer $operator
olga <- 200
    body: {"items":[{"id":"<text>"channel":"/s01/own",<text>"code":"user.paper.empty",<text>
olga -> GET /admin/api/v1/dead-letters/groups
    Authorization: Bearer $operator
olga <- 200
    body: {"items":[<text>"channel":"/s01/own","code":"user.paper.empty",<text>
-- A label for each code that anybody makes up would fill the memory of those who collect metrics.
olga -> GET /metrics
olga <- 200
    body: <text>holdfast_deliveries_failed_total{family="user"}<text>
-- What does not have the form of a code is in the reason.
bob publishes "page 2" to /s01/own
alice <~ /s01/own {"data": "page 2", ...}
         /meta/connect ok {"ext": {"ack": 3}}
walter ~> /meta/connect {"ext": {"ack": 2}}
alice ~> /meta/connect {"ext": {"ack": 3, "delivery": {"verdicts": [{"seq": 2, "errorCode": "PaperEmpty!", "message": "tray 3"}]}}}
walter <~ /sys/deadMessage {"data": {"content": "page 2", "errorCode": "user.update.internalError", "reason": <text like .*PaperEmpty!: tray 3>, ...}, ...}
          /meta/connect ok {"ext": {"ack": 3}}
alice leaves while waiting
walter disconnects

# A receiver can declare one message dead, and the others of its batch arrive
walter watches the dead letters
alice takes /s07
bob handshakes
bob -> /s07 {"data": 1}
       /s07 {"data": 2}
       /s07 {"data": 3}
bob <- /s07 ok
       /s07 ok
       /s07 ok
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /s07 {"data": 1, "ext": {"delivery": {"seq": 1, ...}}}
         /s07 {"data": 2, "ext": {"delivery": {"seq": 2, ...}}}
         /s07 {"data": 3, "ext": {"delivery": {"seq": 3, ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
alice ~> /meta/connect {"ext": {"ack": 2, "delivery": {"verdicts": [{"seq": 2, "errorCode": "user.update.deadMessage"}]}}}
walter <~ /sys/deadMessage {"data": {"content": 2, "errorCode": "user.update.deadMessage", ...}, ...}
          /meta/connect ok {"ext": {"ack": 2}}
-- The ack settles the others: there are no more dead letters and no redeliveries.
walter ~> /meta/connect {"ext": {"ack": 2}}
alice is held for 100 ms
walter is held
alice leaves while waiting
walter leaves while waiting

# Accepted messages are counted, and a message declared dead is one of them
alice takes /s07/counted under {"session": "s07/1"}
bob handshakes
bob -> /s07/counted {"data": 1}
       /s07/counted {"data": 2}
       /s07/counted {"data": 3}
bob <- /s07/counted ok
       /s07/counted ok
       /s07/counted ok
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /s07/counted {"data": 1, ...}
         /s07/counted {"data": 2, ...}
         /s07/counted {"data": 3, ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice ~> /meta/connect {"ext": {"ack": 2, "delivery": {"verdicts": [{"seq": 2, "errorCode": "user.update.deadMessage"}]}}}
alice is held
olga -> GET /admin/api/v1/sessions/s07/1
    Authorization: Bearer $operator
olga <- 200
    body: {<text>"acked":3,<text>}
bob -> /s07/counted {"data": 4}
bob <- /s07/counted ok
alice <~ /s07/counted {"data": 4, ...}
         /meta/connect ok {"ext": {"ack": 3}}
alice -> /meta/connect {"ext": {"ack": 3, "delivery": {"verdicts": [{"seq": 4, "errorCode": "user.update.error"}]}}, "advice": {"timeout": 0}}
alice <- /meta/connect ok {"ext": {"ack": 4}, "advice": <any>}
olga -> GET /admin/api/v1/sessions/s07/1
    Authorization: Bearer $operator
olga <- 200
    body: {<text>"acked":3,<text>}
alice ends the session

# A message that one receiver refuses reaches the others, and each refusal makes its own dead letter
walter watches the dead letters
ann takes /s15
ben takes /s15
ann ~> /meta/connect {"ext": {"ack": 1}}
ben ~> /meta/connect {"ext": {"ack": 1}}
bob handshakes
bob publishes "first" to /s15
ann <~ /s15 {"data": "first", "ext": {"delivery": {"seq": 1, ...}}}
       /meta/connect ok {"ext": {"ack": 2}}
ben <~ /s15 {"data": "first", "ext": {"delivery": {"seq": 1, ...}}}
       /meta/connect ok {"ext": {"ack": 2}}
-- Ann refuses it, Ben takes it.
ann ~> /meta/connect {"ext": {"ack": 2, "delivery": {"verdicts": [{"seq": 1, "errorCode": "user.update.error"}]}}}
ben ~> /meta/connect {"ext": {"ack": 2}}
walter <~ /sys/deadMessage {"data": {"content": "first", "errorCode": "user.update.error", "receiver": new $of_ann, ...}, ...}
          /meta/connect ok {"ext": {"ack": 2}}
walter ~> /meta/connect {"ext": {"ack": 2}}
walter is held for 100 ms
ben is held
-- Both refuse the next one.
bob publishes "second" to /s15
ann <~ /s15 {"data": "second", "ext": {"delivery": {"seq": 2, "redelivered": absent, ...}}}
       /meta/connect ok {"ext": {"ack": 3}}
ben <~ /s15 {"data": "second", "ext": {"delivery": {"seq": 2, "redelivered": absent, ...}}}
       /meta/connect ok {"ext": {"ack": 3}}
ann ~> /meta/connect {"ext": {"ack": 3, "delivery": {"verdicts": [{"seq": 2, "errorCode": "user.update.error"}]}}}
walter <~ /sys/deadMessage {"data": {"content": "second", "errorCode": "user.update.error", "receiver": $of_ann, ...}, ...}
          /meta/connect ok {"ext": {"ack": 3}}
walter ~> /meta/connect {"ext": {"ack": 3}}
ben ~> /meta/connect {"ext": {"ack": 3, "delivery": {"verdicts": [{"seq": 2, "errorCode": "user.update.error"}]}}}
walter <~ /sys/deadMessage {"data": {"content": "second", "errorCode": "user.update.error", "receiver": <text>, ...}, ...}
          /meta/connect ok {"ext": {"ack": 4}}
walter ~> /meta/connect {"ext": {"ack": 4}}
walter is held for 100 ms
ann leaves while waiting
ben leaves while waiting
walter leaves while waiting

# A dead letter has the message, its publisher, the receiver that refused it, and the reason
walter -> /meta/handshake {"ext": {"ack": true, "delivery": true, "authentication": {"token": $operator}}}
walter <- /meta/handshake ok {"clientId": new $walter, "ext": {"ack": true, "delivery": {...}}, ...}
walter -> /meta/subscribe {"subscription": "/sys/deadMessage"}
walter <- /meta/subscribe ok
walter -> /meta/connect {"ext": {"ack": 0}}
walter <- /meta/connect ok {"ext": {"ack": 1}}
walter ~> /meta/connect {"ext": {"ack": 1}}
alice takes /s11/x under {"session": "s11/1", "retries": 2, "delay": 1234}
bob -> /meta/handshake {"ext": {"delivery": {"session": "s11bob"}}}
bob <- /meta/handshake ok {"clientId": new $bob, "ext": {"delivery": {"session": {"name": new $sender, ...}, ...}}, ...}
bob -> /s11/x {"data": {"text": "häßlich", "n": [1, 2.5, null, 18446744073709551616]}, "ext": {"delivery": {"priority": 7, "expiration": {"lifeTime": 60000}, "properties": {"color": "red", "size": 55}}}}
bob <- /s11/x ok {"ext": {"delivery": {"state": "OK", "id": <text>, "rcvTimestamp": new $accepted}}}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /s11/x {"data": {"text": "häßlich", "n": [1, 2.5, null, 18446744073709552000.0]}, "ext": {"delivery": {
             "id": <text like [a-z][a-z0-9]{5}-[0-9]{16}000>, "seq": 1, "state": "OK", "sender": $sender, "subscription": "/s11/x",
             "rcvTimestamp": $accepted, "priority": 7, "queue": {"index": 0, "size": 1},
             "expiration": {"lifeTime": 60000, "remainingLife": <0 to 60000>},
             "properties": {"color": "red", "size": 55}}}}
         /meta/connect ok {"ext": {"ack": 2}}
alice ~> /meta/connect {"ext": {"ack": 2, "delivery": {"verdicts": [{"seq": 1, "errorCode": "user.update.illegalArgument", "message": "size 55 is too much"}]}}}
walter <~ /sys/deadMessage {"data": {
              "id": <text like [0-9]{19}>,
              "content": {"text": "häßlich", "n": [1, 2.5, null, 18446744073709552000.0]},
              "channel": "/s11/x",
              "key": {"oid": "/s11/x"},
              "qos": {"sender": $sender, "priority": 7, "rcvTimestamp": $accepted, "properties": {"color": "red", "size": 55},
                      "expiration": {"lifeTime": 60000, "forceDestroy": false}},
              "errorCode": "user.update.illegalArgument",
              "reason": <text like .*size 55 is too much.*>,
              "receiver": "client/s11/1",
              "rcvTimestamp": $accepted,
              "attempts": [{"n": 1, "time": <integer>, "node": "holdfast", "transport": $transport, "outcome": "user.update.illegalArgument", "latency": <0 to 5000>,
                            "code": "user.update.illegalArgument", "text": "size 55 is too much", ...}],
              "attemptCount": 1,
              "redelivered": 0,
              "fingerprint": <text like [0-9a-f]{16}>,
              "generation": 0},
              "ext": {"delivery": {"seq": 1, "properties": {
                  "__oid": "/s11/x",
                  "__rcvTimestamp": $accepted,
                  "__key": <text like .*"oid": ?"/s11/x".*>,
                  "__qos": <text like .*"color": ?"red".*>,
                  "__deadMessageReason": <text like .*size 55 is too much.*>,
                  "__errorCode": "user.update.illegalArgument",
                  "__receiver": "client/s11/1"}, ...}}}
          /meta/connect ok {"ext": {"ack": 2}}
alice leaves while waiting
walter disconnects

# A dead letter that is refused does not become another dead letter
walter -> /meta/handshake {"ext": {"ack": true, "delivery": true, "authentication": {"token": $operator}}}
walter <- /meta/handshake ok {"clientId": new $walter, "ext": {"ack": true, "delivery": {...}}, ...}
walter -> /meta/subscribe {"subscription": "/sys/deadMessage"}
walter <- /meta/subscribe ok
walter -> /meta/connect {"ext": {"ack": 0}}
walter <- /meta/connect ok {"ext": {"ack": 1}}
walter ~> /meta/connect {"ext": {"ack": 1}}
olga watches the dead letters
alice takes /s12/recursion
bob handshakes
bob publishes "bad" to /s12/recursion
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /s12/recursion {"data": "bad", ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice ~> /meta/connect {"ext": {"ack": 2, "delivery": {"verdicts": [{"seq": 1, "errorCode": "user.update.error"}]}}}
walter <~ /sys/deadMessage {"data": {"content": "bad", ...}, "ext": {"delivery": {"seq": 1, ...}}}
          /meta/connect ok {"ext": {"ack": 2}}
olga <~ /sys/deadMessage {"data": {"content": "bad", ...}, ...}
        /meta/connect ok {"ext": {"ack": 2}}
olga ~> /meta/connect {"ext": {"ack": 2}}
walter ~> /meta/connect {"ext": {"ack": 2, "delivery": {"verdicts": [{"seq": 1, "errorCode": "user.update.error"}]}}}
-- Neither the receiver that refused it nor anybody else gets another one.
walter is held for 100 ms
olga is held
walter leaves while waiting
olga leaves while waiting
alice leaves while waiting

# A new subscriber to dead letters does not get earlier ones
alice takes /s12/nobody under {"session": "s12nobody/1"}
bob handshakes
bob publishes "unwatched" to /s12/nobody
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /s12/nobody {"data": "unwatched", ...}
         /meta/connect ok {"ext": {"ack": 2}}
-- The reply comes when the refusal is done.
alice -> /service/delivery {"data": [{"seq": 1, "errorCode": "user.update.error"}]}
alice <- /service/delivery ok
alice ~> /meta/connect {"ext": {"ack": 2}}
walter watches the dead letters
walter is held for 100 ms
bob publishes "watched" to /s12/nobody
alice <~ /s12/nobody {"data": "watched", ...}
         /meta/connect ok {"ext": {"ack": 3}}
alice ~> /meta/connect {"ext": {"ack": 3, "delivery": {"verdicts": [{"seq": 2, "errorCode": "user.update.error"}]}}}
walter <~ /sys/deadMessage {"data": {"content": "watched", ...}, ...}
          /meta/connect ok {"ext": {"ack": 2}}
alice leaves while waiting
walter disconnects

# A dead letter is kept even if nobody subscribes to dead letters
alice takes /s12/kept under {"session": "s12kept/1"}
bob handshakes
bob publishes "kept all the same" to /s12/kept
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /s12/kept {"data": "kept all the same", ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice -> /service/delivery {"data": {"verdicts": [{"seq": 1, "errorCode": "user.update.error"}]}}
alice <- /service/delivery ok
olga -> GET /admin/api/v1/dead-letters?channel=/s12/kept
    Authorization: Bearer $operator
olga <- 200
    body: {"items":[{"id":"<new $letter>","message":<text>"channel":"/s12/kept",<text>"code":"user.update.error",<text>
olga -> GET /admin/api/v1/dead-letters/$letter
    Authorization: Bearer $operator
olga <- 200
    body: <text>"kept all the same"<text>
alice ends the session

# Only operators may use the system's channels and commands
alice handshakes
alice connects
alice -> /meta/subscribe {"subscription": "/sys/deadMessage"}
alice <- /meta/subscribe error "403:denied_by_security_policy:subscribe_denied"
alice -> /meta/subscribe {"subscription": "/sys/**"}
alice <- /meta/subscribe error "403:denied_by_security_policy:subscribe_denied"
alice -> /service/admin {"data": {"cmd": "client/joe/?sessions"}}
alice <- /service/admin error "403:denied_by_security_policy:publish_denied"
mallory -> /meta/handshake {"ext": {"authentication": {"token": "the-operators-of-other-stories-here"}}}
mallory <- /meta/handshake error "403:no_login:handshake_denied" {"advice": {"reconnect": "none", ...}}
olga operates
olga -> /sys/deadMessage {"data": "forged"}
olga <- /sys/deadMessage error "403:denied_by_security_policy:publish_denied"

# The verdict accessDenied ends the session, and all its messages become dead letters in order
walter watches the dead letters
alice takes /s08 under {"session": "s08/1", "retries": -1}
bob handshakes
bob -> /s08 {"data": 1}
       /s08 {"data": 2}
bob <- /s08 ok
       /s08 ok
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /s08 {"data": 1, "ext": {"delivery": {"seq": 1, ...}}}
         /s08 {"data": 2, "ext": {"delivery": {"seq": 2, ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
bob publishes 3 to /s08
alice -> /meta/connect {"ext": {"ack": 1, "delivery": {"verdicts": [{"seq": 1, "errorCode": "user.security.authentication.accessDenied"}]}}}
alice <- /meta/connect error "402::session_unknown" {"advice": {"reconnect": "none", ...}}
walter <~ /sys/deadMessage {"data": {"content": 1, "errorCode": "user.security.authentication.accessDenied", ...}, ...}
          /sys/deadMessage {"data": {"content": 2, "errorCode": "user.security.authentication.accessDenied", ...}, ...}
          /sys/deadMessage {"data": {"content": 3, "errorCode": "user.security.authentication.accessDenied", ...}, ...}
          /meta/connect ok {"ext": {"ack": 2}}
-- The session is gone, although it had a name and retries.
alice -> /s08 {"data": 4}
alice <- /s08 error "402::session_unknown"
olga operates
olga asks "client/s08/1/?connectionState" in vain
walter disconnects

# The verdict accessDenied in another request fails the held connect with the advice none
walter watches the dead letters
alice takes /s08/beside
bob handshakes
bob publishes 1 to /s08/beside
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /s08/beside {"data": 1, "ext": {"delivery": {"seq": 1, ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
alice ~> /meta/connect {"ext": {"ack": 1, "delivery": {"pending": [1]}}}
alice -> /service/delivery {"data": [{"seq": 1, "errorCode": "user.security.authentication.accessDenied"}]}
alice <~ /meta/connect error "402::session_unknown" {"advice": {"reconnect": "none", ...}}
alice <- /service/delivery ok
walter <~ /sys/deadMessage {"data": {"content": 1, "errorCode": "user.security.authentication.accessDenied", ...}, ...}
          /meta/connect ok {"ext": {"ack": 2}}
walter disconnects

# With onUserException dead, one refusal ends all delivery until the next handshake
walter watches the dead letters
alice takes /s01/literal under {"session": "s01/1", "onUserException": "dead"}
bob handshakes
bob -> /s01/literal {"data": 1}
       /s01/literal {"data": 2}
bob <- /s01/literal ok
       /s01/literal ok
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /s01/literal {"data": 1, "ext": {"delivery": {"seq": 1, ...}}}
         /s01/literal {"data": 2, "ext": {"delivery": {"seq": 2, ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
alice ~> /meta/connect {"ext": {"ack": 1, "delivery": {"verdicts": [{"seq": 1, "errorCode": "user.update.error"}]}}}
walter <~ /sys/deadMessage {"data": {"content": 1, "errorCode": "user.update.error", ...}, ...}
          /sys/deadMessage {"data": {"content": 2, "errorCode": "user.update.error", ...}, ...}
          /meta/connect ok {"ext": {"ack": 2}}
walter ~> /meta/connect {"ext": {"ack": 2}}
bob publishes 3 to /s01/literal
walter <~ /sys/deadMessage {"data": {"content": 3, ...}, ...}
          /meta/connect ok {"ext": {"ack": 3}}
alice is held
alice drops
alice -> /meta/handshake {"ext": {"ack": true, "delivery": {"session": "s01/1"}}}
alice <- /meta/handshake ok {"clientId": new $alice, "ext": {"ack": true, "delivery": {"resumed": true, "waiting": 0, ...}}, ...}
alice -> /meta/connect {"ext": {"ack": 0}}
alice <- /meta/connect ok {"ext": {"ack": 1}}
bob publishes 4 to /s01/literal
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /s01/literal {"data": 4, "ext": {"delivery": {"redelivered": absent, ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
alice ends the session
walter disconnects
