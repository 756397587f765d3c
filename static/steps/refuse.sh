# Listens, and refuses the first message. Bayeux needs a session, and its cookie.
say() { curl -s -b jar -c jar http://127.0.0.1:8080/cometd -H 'Content-Type: application/json' -d "$1"; echo; }
connect() { say '{"channel": "/meta/connect", "clientId": "'$id'", "connectionType": "long-polling"}'; }

id=$(say '{"channel": "/meta/handshake", "version": "1.0",
    "supportedConnectionTypes": ["long-polling"], "ext": {"delivery": {}}}' |
    sed 's/.*"clientId":"\([^"]*\)".*/\1/')
say '{"channel": "/meta/subscribe", "clientId": "'$id'", "subscription": "/orders/try"}'
connect  # is answered at once
connect  # waits for a message, which has "seq": 1
say '{"channel": "/service/delivery", "clientId": "'$id'",
    "data": {"seq": 1, "errorCode": "user.order.quantity", "message": "the quantity is 0"}}'
