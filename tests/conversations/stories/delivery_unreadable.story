-- Acks, verdicts and options that the server cannot read are refused, and settle nothing.

transports: long-polling, callback-polling, websocket

# A connect with an unreadable verdict is refused, and its ack settles nothing
alice takes /unreadable/connect
bob handshakes
bob publishes 1 to /unreadable/connect
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /unreadable/connect {"data": 1, ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice -> /meta/connect {"ext": {"ack": 2, "delivery": {"verdicts": [{"seq": "1", "errorCode": "user.update.error"}]}}}
alice <- /meta/connect error "400:user.illegalArgument,verdicts[0].seq:delivery_invalid"
alice -> /meta/connect {"ext": {"ack": 2, "delivery": {"verdicts": {"seq": 1, "errorCode": "user.update.error"}}}}
alice <- /meta/connect error "400:user.illegalArgument,verdicts:delivery_invalid"
alice -> /meta/connect {"ext": {"ack": 2, "delivery": {"pending": "1"}}}
alice <- /meta/connect error "400:user.illegalArgument,pending:delivery_invalid"
alice -> /meta/connect {"ext": {"ack": 2, "delivery": {"verdict": []}}}
alice <- /meta/connect error "400:user.illegalArgument,verdict:delivery_invalid"
alice -> /meta/connect {"ext": {"ack": "2", "delivery": {"verdicts": [{"seq": 1, "errorCode": "user.update.error"}]}}}
alice <- /meta/connect error "400:user.illegalArgument,ack:ext_invalid"
-- None of these had an effect: the message comes again, and is refused only now.
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /unreadable/connect {"data": 1, "ext": {"delivery": {"seq": 2, "redelivered": 1, ...}}}
         /meta/connect ok {"ext": {"ack": 3}}
alice ~> /meta/connect {"ext": {"ack": 3, "delivery": {"verdicts": [{"seq": 2.0, "errorCode": "user.update.error"}]}}}
alice is held
bob publishes 2 to /unreadable/connect
alice <~ /unreadable/connect {"data": 2, "ext": {"delivery": {"seq": 3, ...}}}
         /meta/connect ok {"ext": {"ack": 4}}
alice disconnects

# Any message with an unreadable verdict is refused
alice takes /unreadable/anything
bob handshakes
bob publishes 1 to /unreadable/anything
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /unreadable/anything {"data": 1, ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice -> /service/delivery {"data": {"verdicts": [{"seq": "1", "errorCode": "user.update.error"}]}}
         /service/delivery {"data": {"verdicts": [{"seq": 1, "errorCode": "user.update.error"}], "seq": 1}}
         /unreadable/publish {"data": 1, "ext": {"delivery": {"verdicts": [{"seq": true, "errorCode": "user.update.error"}]}}}
         /meta/subscribe {"subscription": "/unreadable/more", "ext": {"delivery": {"verdicts": [{"seq": 1, "code": "user.update.error"}]}}}
         /meta/disconnect {"ext": {"delivery": {"verdicts": ["OK"]}}}
alice <- /service/delivery error "400:user.illegalArgument,verdicts[0].seq:delivery_invalid"
         /service/delivery error "400:user.illegalArgument,seq:delivery_invalid"
         /unreadable/publish error "400:user.illegalArgument,verdicts[0].seq:delivery_invalid"
         /meta/subscribe error "400:user.illegalArgument,verdicts[0].code:delivery_invalid" {"subscription": "/unreadable/more"}
         /meta/disconnect error "400:user.illegalArgument,verdicts[0]:delivery_invalid"
bob publishes 2 to /unreadable/more
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /unreadable/anything {"data": 1, "ext": {"delivery": {"redelivered": 1, ...}}}
         /meta/connect ok {"ext": {"ack": 3}}
alice disconnects

# A handshake with unreadable options is refused
alice -> /meta/handshake {"ext": {"ack": 1, "delivery": true}}
alice <- /meta/handshake error "400:user.illegalArgument,ack:ext_invalid" {"advice": {"reconnect": "none", ...}}
alice -> /meta/handshake {"ext": {"delivery": {"verdicts": "all"}}}
alice <- /meta/handshake error "400:user.illegalArgument,verdicts:delivery_invalid" {"advice": {"reconnect": "none", ...}}
alice -> /meta/handshake {"ext": {"timesync": [1]}}
alice <- /meta/handshake error "400:user.illegalArgument,timesync:ext_invalid" {"advice": {"reconnect": "none", ...}}

# Reply channels of others and unreadable options of requests are refused
alice handshakes
alice connects
alice -> /reserved {"data": 1, "ext": {"replyTo": "/ret/AAAAAAAAAAAAAAAAAAAAAA/4000001", "timeout": 1000}}
         /meta/subscribe {"subscription": "/ret/**"}
         /service/unknown {"data": 1}
alice <- /reserved error "403:replyTo:reply_denied"
         /meta/subscribe error "403:denied_by_security_policy:subscribe_denied" {"subscription": "/ret/**"}
         /service/unknown ok
bob -> /meta/handshake {"ext": {"request": 1}}
bob <- /meta/handshake error "400:user.illegalArgument,request:ext_invalid" {"advice": {"reconnect": "none", ...}}
alice disconnects
