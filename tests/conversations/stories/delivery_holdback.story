-- Receivers that cannot work now hold their queue back: nothing is lost, and nothing is handed over
-- until an operator or the receiver resumes the queue.

transports: long-polling, websocket

# Messages that were held back all arrive when an operator resumes the session
alice takes /s05 under {"session": "s05/1", "retries": -1, "delay": 5000}
bob handshakes
bob -> /s05 {"data": {"part": 1, "text": <text of 5000 characters>}, "ext": {"delivery": {"persistent": true}}}
bob <- /s05 ok {"ext": {"delivery": {"state": "OK", "id": <text>, "rcvTimestamp": <text>}}}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /s05 {"data": <any>, "ext": {"delivery": {"seq": 1, "redelivered": absent, ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
alice ~> /meta/connect {"ext": {"ack": 1, "delivery": {"verdicts": [{"seq": 1, "errorCode": "user.update.holdback", "message": "disk full"}]}}}
alice is held for 100 ms
olga operates
olga sets "client/s05/1/?dispatcherActive" to "true"
alice <~ /s05 {"data": {"part": 1, "text": <text of 5000 characters>}, "ext": {"delivery": {"seq": 2, "redelivered": 1, ...}}}
         /meta/connect ok {"ext": {"ack": 3}}
alice ~> /meta/connect {"ext": {"ack": 3}}
alice is held
alice leaves while waiting

# Holding back the first message keeps all messages, in order, and ends no session
walter watches the dead letters
olga operates
alice takes /s06/first under {"session": "s06/1", "retries": 0}
bob handshakes
bob -> /s06/first {"data": 1}
       /s06/first {"data": 2}
       /s06/first {"data": 3}
bob <- /s06/first ok
       /s06/first ok
       /s06/first ok
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /s06/first {"data": 1, "ext": {"delivery": {"seq": 1, "redelivered": absent, ...}}}
         /s06/first {"data": 2, "ext": {"delivery": {"seq": 2, "redelivered": absent, ...}}}
         /s06/first {"data": 3, "ext": {"delivery": {"seq": 3, "redelivered": absent, ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
olga asks "client/s06/1/?dispatcherActive" and hears "true"
alice ~> /meta/connect {"ext": {"ack": 2, "delivery": {"verdicts": [{"seq": 1, "errorCode": "user.update.holdback"}]}}}
olga asks "client/s06/1/?dispatcherActive" and hears "false"
olga asks "client/s06/1/?connectionState" and hears "ALIVE"
olga asks "client/s06/1/?cbQueueNumMsgs" and hears "3"
olga asks "client/s06/?sessions" and hears "s06/1"
bob publishes 4 to /s06/first
olga asks "client/s06/1/?cbQueueNumMsgs" and hears "4"
alice is held
walter is held
olga sets "client/s06/1/?dispatcherActive" to "true"
alice <~ /s06/first {"data": 1, "ext": {"delivery": {"seq": 4, "redelivered": 1, ...}}}
         /meta/connect ok {"ext": {"ack": 3}}
alice -> /meta/connect {"ext": {"ack": 3}}
alice <- /s06/first {"data": 2, "ext": {"delivery": {"seq": 5, "redelivered": absent, ...}}}
         /s06/first {"data": 3, "ext": {"delivery": {"seq": 6, "redelivered": absent, ...}}}
         /meta/connect ok {"ext": {"ack": 4}}
alice -> /meta/connect {"ext": {"ack": 4}}
alice <- /s06/first {"data": 4, "ext": {"delivery": {"seq": 7, "redelivered": absent, ...}}}
         /meta/connect ok {"ext": {"ack": 5}}
alice ~> /meta/connect {"ext": {"ack": 5}}
alice is held
olga asks "client/s06/1/?cbQueueNumMsgs" and hears "0"
walter is held
alice leaves while waiting
walter leaves while waiting

# A holdback in the middle of a batch settles the messages before it
alice takes /s06/middle under {"session": "s06middle/1"}
bob handshakes
bob -> /s06/middle {"data": 1}
       /s06/middle {"data": 2}
       /s06/middle {"data": 3}
bob <- /s06/middle ok
       /s06/middle ok
       /s06/middle ok
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /s06/middle {"data": 1, "ext": {"delivery": {"seq": 1, ...}}}
         /s06/middle {"data": 2, "ext": {"delivery": {"seq": 2, ...}}}
         /s06/middle {"data": 3, "ext": {"delivery": {"seq": 3, ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
alice ~> /meta/connect {"ext": {"ack": 2, "delivery": {"verdicts": [{"seq": 2, "errorCode": "user.update.holdback"}]}}}
alice is held for 100 ms
alice drops
-- The same session, resumed by its own client.
alice -> /meta/handshake {"ext": {"ack": true, "delivery": {"session": "s06middle/1", "dispatcherActive": true}}}
alice <- /meta/handshake ok {"clientId": new $alice, "ext": {"ack": true, "delivery": {"resumed": true, "waiting": 2, "dispatcherActive": true, ...}}, ...}
alice -> /meta/connect {"ext": {"ack": 0}}
alice <- /s06/middle {"data": 2, "ext": {"delivery": {"redelivered": 1, ...}}}
         /s06/middle {"data": 3, "ext": {"delivery": {"redelivered": absent, ...}}}
         /meta/connect ok {"ext": {"ack": 1}}
alice ~> /meta/connect {"ext": {"ack": 1}}
alice is held
alice leaves while waiting

# Messages that were settled out of order are not repeated after a holdback
alice takes /s06/turn under {"session": "s06turn/1"}
bob handshakes
bob -> /s06/turn {"data": 1}
       /s06/turn {"data": 2}
       /s06/turn {"data": 3}
bob <- /s06/turn ok
       /s06/turn ok
       /s06/turn ok
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /s06/turn {"data": 1, ...}
         /s06/turn {"data": 2, ...}
         /s06/turn {"data": 3, ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice ~> /meta/connect {"ext": {"ack": 2, "delivery": {"verdicts": [{"seq": 1, "errorCode": "user.update.holdback"}, {"seq": 2, "state": "OK"}]}}}
olga operates
olga asks "client/s06turn/1/?cbQueueNumMsgs" and hears "2"
olga sets "client/s06turn/1/?dispatcherActive" to "true"
alice <~ /s06/turn {"data": 1, ...}
         /meta/connect ok {"ext": {"ack": 3}}
alice -> /meta/connect {"ext": {"ack": 3}}
alice <- /s06/turn {"data": 3, ...}
         /meta/connect ok {"ext": {"ack": 4}}
alice ~> /meta/connect {"ext": {"ack": 4}}
alice is held
alice leaves while waiting

# A session stays held back when its client returns without resuming it
alice takes /s06/again under {"session": "s06again/1"}
bob handshakes
bob publishes 1 to /s06/again
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /s06/again {"data": 1, "ext": {"delivery": {"seq": 1, ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
alice ~> /meta/connect {"ext": {"ack": 2, "delivery": {"verdicts": [{"seq": 1, "errorCode": "user.update.holdback"}]}}}
alice drops
alice -> /meta/handshake {"ext": {"ack": true, "delivery": {"session": "s06again/1"}}}
alice <- /meta/handshake ok {"clientId": new $alice, "ext": {"ack": true, "delivery": {"resumed": true, "waiting": 1, "dispatcherActive": false, ...}}, ...}
alice -> /meta/connect {"ext": {"ack": 0}}
alice <- /meta/connect ok {"ext": {"ack": 1}}
alice ~> /meta/connect {"ext": {"ack": 1}}
alice is held for 100 ms
-- More urgent messages do not get past it.
bob -> /s06/again {"data": 2, "ext": {"delivery": {"priority": 9}}}
bob <- /s06/again ok {"ext": {"delivery": {"state": "OK", "id": <text>, "rcvTimestamp": <text>}}}
alice is held for 100 ms
olga operates
olga sets "client/s06again/1/?dispatcherActive" to "true"
alice <~ /s06/again {"data": 1, "ext": {"delivery": {"redelivered": 1, ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
alice -> /meta/connect {"ext": {"ack": 2}}
alice <- /s06/again {"data": 2, "ext": {"delivery": {"priority": 9, ...}}}
         /meta/connect ok {"ext": {"ack": 3}}
alice ends the session

# A session that is held back is not given up when contact is lost
! max_interval = 500
walter watches the dead letters
alice takes /s06/lost under {"session": "s06lost/1", "retries": 0}
bob handshakes
bob publishes 1 to /s06/lost
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /s06/lost {"data": 1, "ext": {"delivery": {"seq": 1, ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
alice ~> /meta/connect {"ext": {"ack": 2, "delivery": {"verdicts": [{"seq": 1, "errorCode": "user.update.holdback"}]}}}
alice drops
1000 ms pass
walter is held
alice ~> /meta/connect {"ext": {"ack": 2}}
alice is held
olga operates
olga sets "client/s06lost/1/?dispatcherActive" to "true"
alice <~ /s06/lost {"data": 1, "ext": {"delivery": {"redelivered": 1, ...}}}
         /meta/connect ok {"ext": {"ack": 3}}
alice ends the session
walter leaves while waiting

# The guard holds back a channel whose receivers all refuse its messages, and alerts operators
transports: long-polling
! channels = {"/faulty": {"guard": true}}
! guard_receivers = 2
! guard_messages = 2
! guard_window = 6000
! guard_retry = 300000
olga operates
olga subscribes to /sys/alert
olga ~> /meta/connect
alice takes /faulty
ben takes /faulty
carol handshakes
carol subscribes to /faulty
carol connects
bob handshakes
alice ~> /meta/connect {"ext": {"ack": 1}}
ben ~> /meta/connect {"ext": {"ack": 1}}
-- All is well.
bob publishes 0 to /faulty
alice <~ /faulty {"data": 0, "ext": {"delivery": {"seq": 1, ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
ben <~ /faulty {"data": 0, "ext": {"delivery": {"seq": 1, ...}}}
       /meta/connect ok {"ext": {"ack": 2}}
alice ~> /meta/connect {"ext": {"ack": 2}}
ben ~> /meta/connect {"ext": {"ack": 2}}
-- Now they refuse everything; at the first refusal the guard begins to watch the channel.
bob publishes 1 to /faulty
alice <~ /faulty {"data": 1, "ext": {"delivery": {"seq": 2, ...}}}
         /meta/connect ok {"ext": {"ack": 3}}
ben <~ /faulty {"data": 1, "ext": {"delivery": {"seq": 2, ...}}}
       /meta/connect ok {"ext": {"ack": 3}}
alice ~> /meta/connect {"ext": {"ack": 3, "delivery": {"verdicts": [{"seq": 2, "errorCode": "user.update.error"}]}}}
ben ~> /meta/connect {"ext": {"ack": 3, "delivery": {"verdicts": [{"seq": 2, "errorCode": "user.update.error"}]}}}
bob publishes 2 to /faulty
alice <~ /faulty {"data": 2, "ext": {"delivery": {"seq": 3, ...}}}
         /meta/connect ok {"ext": {"ack": 4}}
ben <~ /faulty {"data": 2, "ext": {"delivery": {"seq": 3, ...}}}
       /meta/connect ok {"ext": {"ack": 4}}
alice ~> /meta/connect {"ext": {"ack": 4, "delivery": {"verdicts": [{"seq": 3, "errorCode": "user.update.error"}]}}}
ben ~> /meta/connect {"ext": {"ack": 4, "delivery": {"verdicts": [{"seq": 3, "errorCode": "user.update.error"}]}}}
bob publishes 3 to /faulty
alice <~ /faulty {"data": 3, "ext": {"delivery": {"seq": 4, ...}}}
         /meta/connect ok {"ext": {"ack": 5}}
ben <~ /faulty {"data": 3, "ext": {"delivery": {"seq": 4, ...}}}
       /meta/connect ok {"ext": {"ack": 5}}
alice ~> /meta/connect {"ext": {"ack": 5, "delivery": {"verdicts": [{"seq": 4, "errorCode": "user.update.error"}]}}}
ben ~> /meta/connect {"ext": {"ack": 5, "delivery": {"verdicts": [{"seq": 4, "errorCode": "user.update.error"}]}}}
-- No alert yet: a receiver may still accept a message.
olga is held for 600 ms
bob publishes 4 to /faulty
alice <~ /faulty {"data": 4, "ext": {"delivery": {"seq": 5, ...}}}
         /meta/connect ok {"ext": {"ack": 6}}
ben <~ /faulty {"data": 4, "ext": {"delivery": {"seq": 5, ...}}}
       /meta/connect ok {"ext": {"ack": 6}}
alice ~> /meta/connect {"ext": {"ack": 6, "delivery": {"verdicts": [{"seq": 5, "errorCode": "user.update.error"}]}}}
olga <~ /sys/alert {"data": {"kind": "channel held back", "channel": "/faulty", "reason": "2 of 2 receivers refused 7 of 7 messages"}, ...}
        /meta/connect ok
ben ~> /meta/connect {"ext": {"ack": 6, "delivery": {"verdicts": [{"seq": 5, "errorCode": "user.update.error"}]}}}
bob publishes 5 to /faulty
alice is held for 100 ms
ben is held
bob -> /faulty {"data": 6, "ext": {"delivery": {"refuseHeld": true}}}
bob <- /faulty error "503:communication.user.holdback,/faulty:channel_held_back"
-- A receiver without verdicts still gets everything.
carol -> /meta/connect
carol <- /faulty {"data": 0}
         /faulty {"data": 1}
         /faulty {"data": 2}
         /faulty {"data": 3}
         /faulty {"data": 4}
         /faulty {"data": 5}
         /meta/connect ok
alice leaves while waiting
ben leaves while waiting
