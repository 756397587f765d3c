-- Operators hold queues back and resume them with xmlBlaster's commands, and read them by REST.

transports: long-polling, websocket

# An operator holds a session back, and resumes it
olga operates
alice takes /s16 under {"session": "dispatchTester/1"}
alice ~> /meta/connect {"ext": {"ack": 1}}
bob handshakes
bob -> /s16 {"data": 1}
       /s16 {"data": 2}
bob <- /s16 ok
       /s16 ok
alice <~ /s16 {"data": 1, ...}
         /s16 {"data": 2, ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice ~> /meta/connect {"ext": {"ack": 2}}
-- A command that reads ignores the value after it.
olga asks "get __cmd:client/dispatchTester/1/?dispatcherActive=one,two,three" and hears "true"
olga asks "__cmd:client/dispatchTester/1/?dispatcherActive" and hears "true"
olga sets "__cmd:client/dispatchTester/1/?dispatcherActive" to "false"
olga asks "__cmd:client/dispatchTester/1/?dispatcherActive" and hears "false"
bob -> /s16 {"data": 3}
       /s16 {"data": 4}
bob <- /s16 ok
       /s16 ok
alice is held for 100 ms
olga sets "__cmd:client/dispatchTester/1/?dispatcherActive" to "true"
alice <~ /s16 {"data": 3, "ext": {"delivery": {"redelivered": absent, ...}}}
         /s16 {"data": 4, "ext": {"delivery": {"redelivered": absent, ...}}}
         /meta/connect ok {"ext": {"ack": 3}}
olga asks "__cmd:client/dispatchTester/1/?dispatcherActive" and hears "true"
alice ~> /meta/connect {"ext": {"ack": 3}}
alice is held
alice leaves while waiting

# A command may have its full path, its verb or its value
olga operates
alice takes /s18 under {"session": "s18/1"}
olga asks "/node/holdfast/client/s18/1/?dispatcherActive" and hears "true"
olga -> /service/admin {"data": {"cmd": "/node/holdfast/client/s18/session/1/?dispatcherActive=false"}}
olga <- /service/admin {"id": <text>, "data": {"command": "/node/holdfast/client/s18/1/?dispatcherActive", "value": "false", "state": "OK", "info": "/node/holdfast/client/s18/1/?dispatcherActive=false"}, "successful": true}
        /service/admin ok
olga asks "get client/s18/1/?dispatcherActive" and hears "false"
olga -> /service/admin {"data": {"cmd": "set client/s18/1/?dispatcherActive=true"}}
olga <- /service/admin {"id": <text>, "data": {"value": "true", "state": "OK", ...}, "successful": true}
        /service/admin ok
olga asks "get /node/holdfast/client/s18/1/?dispatcherActive" and hears "true"
-- Commands that make no sense change nothing.
olga asks "client/s18/2/?dispatcherActive" in vain
olga asks "set client/s18/1/?dispatcherActive=perhaps" in vain
olga asks "client/s18/1/?dispatcherInactive" in vain
olga asks "client/s18/1/?dispatcherActive" and hears "true"
alice ends the session

# An operator can read a queue without delivering its entries
olga operates
alice takes /s17/look under {"session": "s17/1"}
olga sets "client/s17/1/?dispatcherActive" to "false"
alice ~> /meta/connect {"ext": {"ack": 1}}
bob handshakes
bob -> /s17/look {"data": "one"}
       /s17/look {"data": "two"}
bob <- /s17/look ok
       /s17/look ok
olga -> GET /admin/api/v1/sessions/s17/1/queue
    Authorization: Bearer $operator
olga <- 200
    body: {"items":[<text>"data":"one"<text>"data":"two"<text>]}
olga asks "client/s17/1/?cbQueueNumMsgs" and hears "2"
-- The refusal of the command that does this in xmlBlaster names the request.
olga -> /service/admin {"data": {"cmd": "client/s17/1/?cbQueueEntries=maxEntries=3&maxSize=-1&consumable=false&waitingDelay=0"}}
olga <- /service/admin {"id": <text>, "data": {"code": "user.illegalArgument", "message": <text like .*GET /sessions/s17/1/queue .*>}, "successful": false}
        /service/admin ok
alice is held
olga sets "client/s17/1/?dispatcherActive" to "true"
alice <~ /s17/look {"data": "one", ...}
         /s17/look {"data": "two", ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice -> /meta/connect {"ext": {"ack": 2}, "advice": {"timeout": 0}}
alice <- /meta/connect ok {"ext": {"ack": 3}, "advice": <any>}
alice ends the session

# Messages that an operator removes from a queue are not delivered
olga operates
alice takes /s17/take under {"session": "s17take/1"}
olga sets "client/s17take/1/?dispatcherActive" to "false"
alice ~> /meta/connect {"ext": {"ack": 1}}
bob handshakes
bob -> /s17/take {"data": 1}
       /s17/take {"data": 2}
bob <- /s17/take ok
       /s17/take ok
olga -> DELETE /admin/api/v1/sessions/s17take/1/queue
    Authorization: Bearer $operator
olga <- 200
    body: {"discarded":2}
olga asks "client/s17take/1/?cbQueueNumMsgs" and hears "0"
olga sets "client/s17take/1/?dispatcherActive" to "true"
bob publishes 3 to /s17/take
alice <~ /s17/take {"data": 3, ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice ends the session

# Urgent messages overtake messages that were never handed over
alice takes /s20 under {"session": "s20/1", "dispatcherActive": false}
alice ~> /meta/connect {"ext": {"ack": 1}}
bob handshakes
bob -> /s20 {"data": "one", "ext": {"delivery": {"priority": 1}}}
       /s20 {"data": "five", "ext": {"delivery": {"priority": 5}}}
       /s20 {"data": "nine", "ext": {"delivery": {"priority": 9}}}
       /s20 {"data": "five again"}
bob <- /s20 ok {"ext": {"delivery": {"state": "OK", "id": <text>, "rcvTimestamp": <text>}}}
       /s20 ok {"ext": {"delivery": {"state": "OK", "id": <text>, "rcvTimestamp": <text>}}}
       /s20 ok {"ext": {"delivery": {"state": "OK", "id": <text>, "rcvTimestamp": <text>}}}
       /s20 ok
alice is held for 100 ms
olga operates
olga sets "client/s20/1/?dispatcherActive" to "true"
alice <~ /s20 {"data": "nine", "ext": {"delivery": {"priority": 9, "queue": {"index": 0, "size": 4}, ...}}}
         /s20 {"data": "five", "ext": {"delivery": {"priority": 5, "queue": {"index": 1, "size": 4}, ...}}}
         /s20 {"data": "five again", "ext": {"delivery": {"priority": 5, "queue": {"index": 2, "size": 4}, ...}}}
         /s20 {"data": "one", "ext": {"delivery": {"priority": 1, "queue": {"index": 3, "size": 4}, ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
alice -> /meta/connect {"ext": {"ack": 2}, "advice": {"timeout": 0}}
alice <- /meta/connect ok {"ext": {"ack": 3}, "advice": <any>}
alice ends the session

# Messages that waited during a holdback come by priority, and in order within one priority
olga operates
alice takes /s19/all under {"session": "s19all/1"}
alice ~> /meta/connect {"ext": {"ack": 1}}
olga sets "client/s19all/1/?dispatcherActive" to "false"
bob handshakes
bob -> /s19/all {"data": "0", "ext": {"delivery": {"priority": 0}}}
       /s19/all {"data": "1", "ext": {"delivery": {"priority": 1}}}
       /s19/all {"data": "2", "ext": {"delivery": {"priority": 2}}}
       /s19/all {"data": "3", "ext": {"delivery": {"priority": 3}}}
       /s19/all {"data": "4", "ext": {"delivery": {"priority": 4}}}
       /s19/all {"data": "5", "ext": {"delivery": {"priority": 5}}}
       /s19/all {"data": "6", "ext": {"delivery": {"priority": 6}}}
       /s19/all {"data": "7", "ext": {"delivery": {"priority": 7}}}
       /s19/all {"data": "8", "ext": {"delivery": {"priority": 8}}}
       /s19/all {"data": "9", "ext": {"delivery": {"priority": 9}}}
       /s19/all {"data": "0 again", "ext": {"delivery": {"priority": 0}}}
       /s19/all {"data": "1 again", "ext": {"delivery": {"priority": 1}}}
       /s19/all {"data": "2 again", "ext": {"delivery": {"priority": 2}}}
       /s19/all {"data": "3 again", "ext": {"delivery": {"priority": 3}}}
       /s19/all {"data": "4 again", "ext": {"delivery": {"priority": 4}}}
       /s19/all {"data": "5 again", "ext": {"delivery": {"priority": 5}}}
       /s19/all {"data": "6 again", "ext": {"delivery": {"priority": 6}}}
       /s19/all {"data": "7 again", "ext": {"delivery": {"priority": 7}}}
       /s19/all {"data": "8 again", "ext": {"delivery": {"priority": 8}}}
       /s19/all {"data": "9 again", "ext": {"delivery": {"priority": 9}}}
bob <- 20 times /s19/all ok {"ext": {"delivery": {"state": "OK", "id": <text>, "rcvTimestamp": <text>}}}
olga asks "client/s19all/1/?cbQueueNumMsgs" and hears "20"
alice is held for 100 ms
olga sets "client/s19all/1/?dispatcherActive" to "true"
alice <~ /s19/all {"data": "9", ...}
         /s19/all {"data": "9 again", ...}
         /s19/all {"data": "8", ...}
         /s19/all {"data": "8 again", ...}
         /s19/all {"data": "7", ...}
         /s19/all {"data": "7 again", ...}
         /s19/all {"data": "6", ...}
         /s19/all {"data": "6 again", ...}
         /s19/all {"data": "5", ...}
         /s19/all {"data": "5 again", ...}
         /s19/all {"data": "4", ...}
         /s19/all {"data": "4 again", ...}
         /s19/all {"data": "3", ...}
         /s19/all {"data": "3 again", ...}
         /s19/all {"data": "2", ...}
         /s19/all {"data": "2 again", ...}
         /s19/all {"data": "1", ...}
         /s19/all {"data": "1 again", ...}
         /s19/all {"data": "0", ...}
         /s19/all {"data": "0 again", ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice -> /meta/disconnect {"ext": {"ack": 2, "delivery": {"end": true}}}
alice <- /meta/disconnect ok
