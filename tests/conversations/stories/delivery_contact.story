-- Receivers that are gone, cannot take messages or give no verdict: how long the server waits for them,
-- and what becomes of their messages. Contact is lost after interval + maxInterval without a connect.

transports: long-polling, websocket
! max_interval = 1000

# A session whose client only publishes loses contact and ends
walter watches the dead letters
olga operates
tim takes /s02 under {"session": "s02/1", "retries": 0}
olga asks "client/s02/?sessions" and hears "s02/1"
tim publishes 1 to /s02
walter <~ /sys/deadMessage {"data": {"content": 1, "receiver": "client/s02/1", "errorCode": "communication.noConnection", ...}, ...}
          /meta/connect ok {"ext": {"ack": 2}}
tim -> /s02 {"data": 2}
tim <- /s02 error "402::session_unknown"
tim -> /meta/connect {"ext": {"ack": 1}}
tim <- /meta/connect error "402::session_unknown" {"advice": {"reconnect": "handshake", ...}}
olga operates
olga asks "client/s02/?sessions" in vain
walter disconnects

# A receiver that is gone leaves a dead letter, and others still get the message
ben -> /meta/handshake {"ext": {"ack": true, "delivery": true, "authentication": {"token": $operator}}}
ben <- /meta/handshake ok {"clientId": new $ben, "ext": {"ack": true, "delivery": {...}}, ...}
ben -> /meta/subscribe {"subscription": ["/s03", "/sys/deadMessage"]}
ben <- /meta/subscribe ok
ben -> /meta/connect {"ext": {"ack": 0}}
ben <- /meta/connect ok {"ext": {"ack": 1}}
ben ~> /meta/connect {"ext": {"ack": 1}}
ann takes /s03
ann ~> /meta/connect {"ext": {"ack": 1}}
ann drops
bob handshakes
bob publishes 1 to /s03
ben <~ /s03 {"data": 1, ...}
       /meta/connect ok {"ext": {"ack": 2}}
ben ~> /meta/connect {"ext": {"ack": 2}}
ben is held for 200 ms
ben <~ /sys/deadMessage {"data": {"content": 1, "errorCode": "communication.noConnection", ...}, ...}
       /meta/connect ok {"ext": {"ack": 3}}
ben ~> /meta/connect {"ext": {"ack": 3}}
ann -> /meta/connect {"ext": {"ack": 1}}
ann <- /meta/connect error "402::session_unknown" {"advice": {"reconnect": "handshake", ...}}
ben leaves while waiting

# A plain client that is gone leaves no dead letters
walter watches the dead letters
ann handshakes
ann subscribes to /s03/plain
ann connects
ann drops
bob takes /s03/plain
carol handshakes
carol publishes 1 to /s03/plain
bob -> /meta/connect {"ext": {"ack": 1}}
bob <- /s03/plain {"data": 1, ...}
       /meta/connect ok {"ext": {"ack": 2}}
bob ~> /meta/connect {"ext": {"ack": 2}}
walter is held for 1600 ms
ann -> /meta/connect
ann <- /meta/connect error "402::session_unknown" {"advice": {"reconnect": "handshake", ...}}
bob leaves while waiting
walter leaves while waiting

# A receiver that cannot process a message now gets it again soon, and then continues
walter watches the dead letters
olga operates
alice takes /s09/once under {"session": "s09/1", "retries": 1, "delay": 60000}
bob handshakes
bob -> /s09/once {"data": 1}
       /s09/once {"data": 2}
bob <- /s09/once ok
       /s09/once ok
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /s09/once {"data": 1, "ext": {"delivery": {"seq": 1, ...}}}
         /s09/once {"data": 2, "ext": {"delivery": {"seq": 2, ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
alice ~> /meta/connect {"ext": {"ack": 1, "delivery": {"verdicts": [{"seq": 1, "errorCode": "communication.noConnection"}]}}}
olga asks "client/s09/1/?connectionState" and hears "POLLING"
alice is held for 200 ms
alice <~ /s09/once {"data": 1, "ext": {"delivery": {"seq": 3, "redelivered": 1, ...}}}
         /meta/connect ok {"ext": {"ack": 3}}
olga operates
olga asks "client/s09/1/?connectionState" and hears "ALIVE"
alice -> /meta/connect {"ext": {"ack": 3}}
alice <- /s09/once {"data": 2, "ext": {"delivery": {"seq": 4, "redelivered": absent, ...}}}
         /meta/connect ok {"ext": {"ack": 4}}
alice ~> /meta/connect {"ext": {"ack": 4}}
alice is held for 100 ms
walter is held
alice leaves while waiting
walter leaves while waiting

# The server gives up a receiver that fails more often than it has retries
walter watches the dead letters
alice takes /s09/always under {"retries": 1, "delay": 60000}
bob handshakes
bob publishes 1 to /s09/always
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /s09/always {"data": 1, "ext": {"delivery": {"seq": 1, ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
alice ~> /meta/connect {"ext": {"ack": 1, "delivery": {"verdicts": [{"seq": 1, "errorCode": "communication.noConnection"}]}}}
bob handshakes
bob publishes 2 to /s09/always
alice is held
alice <~ /s09/always {"data": 1, "ext": {"delivery": {"seq": 2, "redelivered": 1, ...}}}
         /meta/connect ok {"ext": {"ack": 3}}
walter is held
alice -> /meta/connect {"ext": {"ack": 1, "delivery": {"verdicts": [{"seq": 2, "errorCode": "communication.noConnection"}]}}}
alice <- /meta/connect error "402::session_unknown" {"advice": {"reconnect": "handshake", ...}}
walter <~ /sys/deadMessage {"data": {"content": 1, "errorCode": "communication.noConnection", "attempts": [{"n": 1, ...}, {"n": 2, ...}], ...}, ...}
          /sys/deadMessage {"data": {"content": 2, "errorCode": "communication.noConnection", ...}, ...}
          /meta/connect ok {"ext": {"ack": 2}}
walter disconnects

# The server gives up a receiver without retries at its first failure
walter watches the dead letters
alice takes /s09/never under {"retries": 0}
bob handshakes
bob publishes 1 to /s09/never
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /s09/never {"data": 1, "ext": {"delivery": {"seq": 1, ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
alice -> /meta/connect {"ext": {"ack": 1, "delivery": {"verdicts": [{"seq": 1, "errorCode": "communication.timeout"}]}}}
alice <- /meta/connect error "402::session_unknown" {"advice": {"reconnect": "handshake", ...}}
walter <~ /sys/deadMessage {"data": {"content": 1, "errorCode": "communication.timeout", ...}, ...}
          /meta/connect ok {"ext": {"ack": 2}}
walter disconnects

# A receiver may delay the next attempt
alice takes /s09/delay under {"retries": 1, "delay": 60000}
bob handshakes
bob publishes 1 to /s09/delay
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /s09/delay {"data": 1, "ext": {"delivery": {"seq": 1, ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
alice ~> /meta/connect {"ext": {"ack": 1, "delivery": {"verdicts": [{"seq": 1, "errorCode": "communication.noConnection", "delay": 1000}]}}}
alice is held for 800 ms
alice <~ /s09/delay {"data": 1, "ext": {"delivery": {"seq": 2, "redelivered": 1, ...}}}
         /meta/connect ok {"ext": {"ack": 3}}
alice disconnects

# A delivery without a verdict within responseTimeout fails
walter watches the dead letters
alice -> /meta/handshake {"ext": {"delivery": {"responseTimeout": 300}}}
alice <- /meta/handshake ok {"clientId": new $alice, "ext": {"delivery": {"responseTimeout": 300, "retries": 0, ...}}, ...}
alice subscribes to /s10/silent
alice connects
bob handshakes
bob publishes 1 to /s10/silent
alice -> /meta/connect
alice <- /s10/silent {"data": 1, "ext": {"delivery": {"seq": 1, ...}}}
         /meta/connect ok
alice ~> /meta/connect
alice <~ /meta/connect error "402::session_unknown" {"advice": {"reconnect": "handshake", ...}}
walter <~ /sys/deadMessage {"data": {"content": 1, "errorCode": "communication.responseTimeout", ...}, ...}
          /meta/connect ok {"ext": {"ack": 2}}
walter ~> /meta/connect {"ext": {"ack": 2}}
-- Its verdict comes too late.
alice -> /service/delivery {"data": [{"seq": 1, "state": "OK"}]}
alice <- /service/delivery error "402::session_unknown"
walter is held
walter leaves while waiting

# A verdict that arrives after the next attempt does not count for that attempt
walter watches the dead letters
alice -> /meta/handshake {"ext": {"delivery": {"responseTimeout": 300, "retries": 2, "delay": 60000}}}
alice <- /meta/handshake ok {"clientId": new $alice, "ext": {"delivery": {...}}, ...}
alice subscribes to /s10/late
alice connects
bob handshakes
bob publishes 1 to /s10/late
alice -> /meta/connect
alice <- /s10/late {"data": 1, "ext": {"delivery": {"seq": 1, "redelivered": absent, ...}}}
         /meta/connect ok
alice ~> /meta/connect
alice is held for 500 ms
alice <~ /s10/late {"data": 1, "ext": {"delivery": {"seq": 2, "redelivered": 1, ...}}}
         /meta/connect ok
alice -> /service/delivery {"data": [{"seq": 1, "errorCode": "user.update.error"}]}
alice <- /service/delivery ok
alice ~> /meta/connect {"ext": {"delivery": {"verdicts": [{"seq": 2, "state": "OK"}]}}}
-- Now it is settled, and stays so.
alice is held for 500 ms
walter is held
alice leaves while waiting
walter leaves while waiting

# A late verdict counts as long as there was no other attempt
walter watches the dead letters
alice -> /meta/handshake {"ext": {"delivery": {"responseTimeout": 300, "retries": 2, "delay": 60000}}}
alice <- /meta/handshake ok {"clientId": new $alice, "ext": {"delivery": {...}}, ...}
alice subscribes to /s10/between
alice connects
bob handshakes
bob -> /s10/between {"data": 1}
       /s10/between {"data": 2}
bob <- /s10/between ok
       /s10/between ok
alice -> /meta/connect
alice <- /s10/between {"data": 1, "ext": {"delivery": {"seq": 1, ...}}}
         /s10/between {"data": 2, "ext": {"delivery": {"seq": 2, ...}}}
         /meta/connect ok
alice ~> /meta/connect
alice is held for 500 ms
alice -> /service/delivery {"data": [{"seq": 1, "state": "OK"}, {"seq": 2, "errorCode": "user.update.error"}]}
alice <- /service/delivery ok
walter <~ /sys/deadMessage {"data": {"content": 2, "errorCode": "user.update.error", ...}, ...}
          /meta/connect ok {"ext": {"ack": 2}}
walter ~> /meta/connect {"ext": {"ack": 2}}
alice is held for 600 ms
alice leaves while waiting
walter leaves while waiting

# A receiver that lists pending messages has time until responseTimeout ends
walter watches the dead letters
alice takes /s10/pending under {"responseTimeout": 600, "retries": 2, "delay": 60000}
bob handshakes
bob -> /s10/pending {"data": 1}
       /s10/pending {"data": 2}
bob <- /s10/pending ok
       /s10/pending ok
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /s10/pending {"data": 1, "ext": {"delivery": {"seq": 1, ...}}}
         /s10/pending {"data": 2, "ext": {"delivery": {"seq": 2, ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
alice ~> /meta/connect {"ext": {"ack": 2, "delivery": {"pending": [1]}}}
alice is held for 300 ms
alice <~ /s10/pending {"data": 1, "ext": {"delivery": {"seq": 3, "redelivered": 1, ...}}}
         /meta/connect ok {"ext": {"ack": 3}}
alice ~> /meta/connect {"ext": {"ack": 3}}
walter is held
alice leaves while waiting
walter leaves while waiting

# The server waits for a receiver with retries, and gives it up after the last attempt
walter watches the dead letters
bob handshakes
alice takes /s21/twice under {"session": "s21/1", "retries": 2, "delay": 1400}
bob -> /s21/twice {"data": 1}
       /s21/twice {"data": 2}
bob <- /s21/twice ok
       /s21/twice ok
alice drops
olga operates
olga asks "client/s21/1/?connectionState" and hears "ALIVE"
-- Contact is lost, then there are attempts after 400 ms and 1400 ms more.
1200 ms pass
olga operates
olga asks "client/s21/1/?connectionState" and hears "POLLING"
walter is held for 500 ms
walter <~ /sys/deadMessage {"data": {"content": 1, "receiver": "client/s21/1", "errorCode": "communication.noConnection.dead", ...}, ...}
          /sys/deadMessage {"data": {"content": 2, "receiver": "client/s21/1", "errorCode": "communication.noConnection.dead", ...}, ...}
          /meta/connect ok {"ext": {"ack": 2}}
olga operates
olga asks "client/s21/1/?connectionState" in vain
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /meta/connect error "402::session_unknown" {"advice": {"reconnect": "handshake", ...}}
walter disconnects

# A receiver that returns between two attempts gets all its messages
walter watches the dead letters
alice takes /s21/back under {"retries": 2, "delay": 60000}
bob handshakes
bob publishes 1 to /s21/back
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /s21/back {"data": 1, "ext": {"delivery": {"seq": 1, ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
bob publishes 2 to /s21/back
alice drops
1800 ms pass
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /s21/back {"data": 1, "ext": {"delivery": {"redelivered": 1, ...}}}
         /meta/connect ok {"ext": {"ack": 3}}
alice -> /meta/connect {"ext": {"ack": 3}}
alice <- /s21/back {"data": 2, "ext": {"delivery": {"redelivered": absent, ...}}}
         /meta/connect ok {"ext": {"ack": 4}}
alice ~> /meta/connect {"ext": {"ack": 4}}
alice is held
walter is held
alice leaves while waiting
walter leaves while waiting

# A delay of zero disables retries
walter watches the dead letters
alice takes /s21/nothing under {"session": "s21nothing/1", "retries": -1, "delay": 0}
bob handshakes
bob publishes 1 to /s21/nothing
alice drops
walter <~ /sys/deadMessage {"data": {"content": 1, "errorCode": "communication.noConnection", ...}, ...}
          /meta/connect ok {"ext": {"ack": 2}}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /meta/connect error "402::session_unknown" {"advice": {"reconnect": "handshake", ...}}
walter disconnects

# A named session waits for its client after contact is lost
walter watches the dead letters
olga operates
alice takes /s21/ever under {"session": "s21ever/1", "delay": 100}
bob handshakes
bob publishes 1 to /s21/ever
alice drops
1800 ms pass
olga operates
olga asks "client/s21ever/1/?connectionState" and hears "POLLING"
olga asks "client/s21ever/1/?cbQueueNumMsgs" and hears "1"
walter is held
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /s21/ever {"data": 1, ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice ends the session
walter leaves while waiting

# Messages that waited for an absent receiver come by priority, and in order within one priority
alice takes /s19 under {"session": "s19/1", "retries": 2, "delay": 60000}
alice drops
1800 ms pass
olga operates
olga asks "client/s19/1/?connectionState" and hears "POLLING"
bob handshakes
bob -> /s19 {"data": "zero", "ext": {"delivery": {"priority": 0}}}
       /s19 {"data": "six", "ext": {"delivery": {"priority": 6}}}
       /s19 {"data": "four", "ext": {"delivery": {"priority": 4}}}
       /s19 {"data": "nine", "ext": {"delivery": {"priority": 9}}}
       /s19 {"data": "six again", "ext": {"delivery": {"priority": 6}}}
       /s19 {"data": "zero again", "ext": {"delivery": {"priority": 0}}}
bob <- 6 times /s19 ok {"ext": {"delivery": {"state": "OK", "id": <text>, "rcvTimestamp": <text>}}}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /s19 {"data": "nine", ...}
         /s19 {"data": "six", ...}
         /s19 {"data": "six again", ...}
         /s19 {"data": "four", ...}
         /s19 {"data": "zero", ...}
         /s19 {"data": "zero again", ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice ends the session

# A message that kills its receivers becomes a dead letter after max_attempts, and the others arrive
! channels = {"/deadly": {"max_attempts": 3}}
walter watches the dead letters
bob handshakes
alice takes /deadly under {"session": "poison/1", "retries": -1}
bob publishes 1 to /deadly
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /deadly {"data": 1, "ext": {"delivery": {"redelivered": absent, ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
alice drops
-- No receiver survives to refuse it, so the next one gets it and crashes too.
alice -> /meta/handshake {"ext": {"ack": true, "delivery": {"session": "poison/1", "retries": -1}}}
alice <- /meta/handshake ok {"clientId": new $alice, "ext": {"ack": true, "delivery": {"resumed": true, "waiting": 1, ...}}, ...}
alice -> /meta/connect {"ext": {"ack": 0}}
alice <- /deadly {"data": 1, "ext": {"delivery": {"redelivered": 1, ...}}}
         /meta/connect ok {"ext": {"ack": 1}}
alice drops
alice -> /meta/handshake {"ext": {"ack": true, "delivery": {"session": "poison/1", "retries": -1}}}
alice <- /meta/handshake ok {"clientId": new $alice, "ext": {"ack": true, "delivery": {...}}, ...}
alice -> /meta/connect {"ext": {"ack": 0}}
alice <- /deadly {"data": 1, "ext": {"delivery": {"redelivered": 2, ...}}}
         /meta/connect ok {"ext": {"ack": 1}}
bob publishes 2 to /deadly
alice drops
-- The fourth one does not get it.
alice -> /meta/handshake {"ext": {"ack": true, "delivery": {"session": "poison/1", "retries": -1}}}
alice <- /meta/handshake ok {"clientId": new $alice, "ext": {"ack": true, "delivery": {...}}, ...}
alice -> /meta/connect {"ext": {"ack": 0}}
alice <- /deadly {"data": 2, "ext": {"delivery": {"redelivered": absent, ...}}}
         /meta/connect ok {"ext": {"ack": 1}}
walter <~ /sys/deadMessage {"data": {"content": 1, "receiver": "client/poison/1", "errorCode": "user.update.error", "attemptCount": 3, "attempts": [{"n": 1, "outcome": "taken over", ...}, {"n": 2, "outcome": "taken over", ...}, {"n": 3, "outcome": "taken over", ...}], ...}, ...}
          /meta/connect ok {"ext": {"ack": 2}}
alice ends the session
walter disconnects

# Messages that were in one batch with a poison message are delivered without it
! channels = {"/deadly": {"max_attempts": 2}}
walter watches the dead letters
bob handshakes
alice takes /deadly under {"session": "company/1", "retries": -1}
bob -> /deadly {"data": 1}
       /deadly {"data": "poison"}
       /deadly {"data": 3}
bob <- 3 times /deadly ok
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /deadly {"data": 1, ...}
         /deadly {"data": "poison", ...}
         /deadly {"data": 3, ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice drops
-- The next one gets them one by one, and crashes at the second.
alice -> /meta/handshake {"ext": {"ack": true, "delivery": {"session": "company/1", "retries": -1}}}
alice <- /meta/handshake ok {"clientId": new $alice, "ext": {"ack": true, "delivery": {"resumed": true, "waiting": 3, ...}}, ...}
alice -> /meta/connect {"ext": {"ack": 0}}
alice <- /deadly {"data": 1, "ext": {"delivery": {"redelivered": 1, ...}}}
         /meta/connect ok {"ext": {"ack": 1}}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /deadly {"data": "poison", "ext": {"delivery": {"redelivered": 1, ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
alice drops
alice -> /meta/handshake {"ext": {"ack": true, "delivery": {"session": "company/1", "retries": -1}}}
alice <- /meta/handshake ok {"clientId": new $alice, "ext": {"ack": true, "delivery": {"resumed": true, "waiting": 2, ...}}, ...}
alice -> /meta/connect {"ext": {"ack": 0}}
alice <- /deadly {"data": 3, "ext": {"delivery": {"redelivered": 1, ...}}}
         /meta/connect ok {"ext": {"ack": 1}}
alice ~> /meta/connect {"ext": {"ack": 1}}
walter <~ /sys/deadMessage {"data": {"content": "poison", "receiver": "client/company/1", "errorCode": "user.update.error", "attemptCount": 2, ...}, ...}
          /meta/connect ok {"ext": {"ack": 2}}
alice is held
walter disconnects
alice leaves while waiting

# Without acks, messages that were lost with a connection are redelivered first
bob handshakes
alice -> /meta/handshake {"ext": {"delivery": {"session": "silent/1"}}}
alice <- /meta/handshake ok {"clientId": new $alice, "ext": {"delivery": {"resumed": false, ...}}, ...}
alice subscribes to /silent
alice connects
bob publishes 1 to /silent
alice -> /meta/connect
alice <- /silent {"data": 1, "ext": {"delivery": {"seq": 1, "redelivered": absent, ...}}}
         /meta/connect ok
alice drops
bob publishes 2 to /silent
alice -> /meta/connect
alice <- /silent {"data": 1, "ext": {"delivery": {"seq": 2, "redelivered": 1, ...}}}
         /meta/connect ok
alice -> /meta/connect {"ext": {"delivery": {"verdicts": [{"seq": 2, "state": "OK"}]}}}
alice <- /silent {"data": 2, "ext": {"delivery": {"seq": 3, "redelivered": absent, ...}}}
         /meta/connect ok
-- A message that it lists as pending does not come again.
alice drops
100 ms pass
alice ~> /meta/connect {"ext": {"delivery": {"pending": [3]}}}
alice is held for 100 ms
alice leaves while waiting

# A dead letter lists each lost reply, and each refusal with the receiver's text
walter watches the dead letters
bob handshakes
alice takes /history under {"session": "history/1", "retries": 1, "delay": 60000}
bob publishes 1 to /history
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /history {"data": 1, ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /history {"data": 1, "ext": {"delivery": {"seq": 2, "redelivered": 1, ...}}}
         /meta/connect ok {"ext": {"ack": 3}}
alice ~> /meta/connect {"ext": {"ack": 2, "delivery": {"verdicts": [{"seq": 2, "errorCode": "communication.noConnection", "message": "no database"}]}}}
alice <~ /history {"data": 1, "ext": {"delivery": {"seq": 3, "redelivered": 2, ...}}}
         /meta/connect ok {"ext": {"ack": 4}}
alice ~> /meta/connect {"ext": {"ack": 3, "delivery": {"verdicts": [{"seq": 3, "errorCode": "user.update.error", "message": "no such order"}]}}}
walter <~ /sys/deadMessage {"data": {"content": 1, "errorCode": "user.update.error", "attemptCount": 3, "redelivered": 2, "attempts": [{"n": 1, "outcome": "lost reply", "code": "", ...}, {"n": 2, "outcome": "communication.noConnection", "text": "no database", ...}, {"n": 3, "outcome": "user.update.error", "text": "no such order", ...}], ...}, ...}
          /meta/connect ok {"ext": {"ack": 2}}
alice leaves while waiting
walter disconnects
