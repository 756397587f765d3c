-- Delayed messages: accepted now, published when they are due.

transports: long-polling, websocket
! max_delay = 60000

# A delayed message is accepted now and delivered later, behind one that was published meanwhile
alice takes /delays/later
bob handshakes
bob -> /delays/later {"data": "second", "ext": {"delivery": {"delay": 400, "properties": {"of": "bob"}}}}
bob <- /delays/later ok {"ext": {"delivery": {"state": "OK", "id": <text>, "rcvTimestamp": <text>, "delay": 400}}}
bob publishes "first" to /delays/later
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /delays/later {"data": "first", ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice -> /meta/connect {"ext": {"ack": 2}}
alice <- /delays/later {"data": "second", "ext": {"delivery": {"properties": {"of": "bob"}, ...}}}
         /meta/connect ok {"ext": {"ack": 3}}
alice disconnects

# A delay that is no time, too long, or of something that is answered at once is refused
bob handshakes
bob -> /delays/refused {"data": 1, "ext": {"delivery": {"delay": "1 s"}}}
       /delays/refused {"data": 2, "ext": {"delivery": {"delay": 60001}}}
       /delays/refused {"data": 3, "ext": {"delivery": {"delay": 1, "administrative": true}}}
       /service/ptp {"data": {"destinations": ["joe"], "content": 4}, "ext": {"delivery": {"delay": 1}}}
bob <- /delays/refused error "400:user.publish,delay:delivery_invalid"
       /delays/refused error "400:user.publish,delay:delivery_invalid"
       /delays/refused error "400:user.publish,delay:delivery_invalid"
       /service/ptp error "400:user.publish,delay:delivery_invalid"

# A repeat of a delayed publish gets the first reply, and the message arrives once
alice takes /delays/once
bob handshakes
bob -> /delays/once {"data": "once", "ext": {"delivery": {"delay": 400, "key": "k"}}}
bob <- /delays/once ok {"ext": {"delivery": {"state": "OK", "id": new $id, "rcvTimestamp": <text>, "delay": 400}}}
bob -> /delays/once {"data": "once", "ext": {"delivery": {"delay": 400, "key": "k"}}}
bob <- /delays/once ok {"ext": {"delivery": {"state": "OK", "id": $id, "rcvTimestamp": <text>, "delay": 400}}}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /delays/once {"data": "once", ...}
         /meta/connect ok {"ext": {"ack": 2}}
alice -> /meta/connect {"ext": {"ack": 2}, "advice": {"timeout": 600}}
alice <- /meta/connect ok {"ext": {"ack": 3}, ...}
alice disconnects
