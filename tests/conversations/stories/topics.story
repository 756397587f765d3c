-- Topics: channels that know what refers to them, can be erased, and end by themselves.

transports: long-polling, websocket
! channels = {"/topics/**": {"topic": true, "destroy_delay": 0}, "/topics/kept/**": {"topic": true, "destroy_delay": -1}}

# A topic exists as long as something refers to it
alice takes /topics/life
alice -> /service/topics {"data": {"state": "/topics/life"}}
alice <- /service/topics ok
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /service/topics {"successful": true, "data": {"channel": "/topics/life", "state": "UNCONFIGURED", "subscribers": 1, ...}, ...}
         /meta/connect ok {"ext": {"ack": 2}}
bob handshakes
bob publishes 1 to /topics/life
alice -> /service/topics {"data": {"state": "/topics/life"}}
alice <- /service/topics ok
alice -> /meta/connect {"ext": {"ack": 2}}
alice <- /topics/life {"data": 1, ...}
         /service/topics {"successful": true, "data": {"state": "ALIVE", "queued": 1, ...}, ...}
         /meta/connect ok {"ext": {"ack": 3}}
alice unsubscribes from /topics/life
alice -> /meta/connect {"ext": {"ack": 3}, "advice": {"timeout": 0}}
alice <- /meta/connect ok {"ext": {"ack": 4}, ...}
alice -> /service/topics {"data": {"state": "/topics/life"}}
alice <- /service/topics ok
alice -> /meta/connect {"ext": {"ack": 4}}
alice <- /service/topics {"successful": false, "data": {"code": "user.oid.unknown", "message": "/topics/life is not a topic"}, ...}
         /meta/connect ok {"ext": {"ack": 5}}

# Messages that wait at an erasure are delivered before the notification of the erasure
alice takes /topics/soft
bob takes /elsewhere
bob publishes 1 to /topics/soft
bob -> /service/topics {"data": {"erase": "/topics/soft"}}
bob <- /service/topics ok
bob -> /meta/connect {"ext": {"ack": 1}}
bob <- /service/topics {"successful": true, "data": {"erased": ["/topics/soft"], "next": null}, ...}
       /meta/connect ok {"ext": {"ack": 2}}
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /topics/soft {"data": 1, "ext": {"delivery": {"state": "OK", ...}}}
         /topics/soft {"data": null, "ext": {"delivery": {"state": "ERASED", "subscription": "/topics/soft", ...}}}
         /meta/connect ok {"ext": {"ack": 2}}
bob publishes 2 to /topics/soft
alice -> /meta/connect {"ext": {"ack": 2}, "advice": {"timeout": 0}}
alice <- /meta/connect ok {"ext": {"ack": 3}, ...}

# A forced erasure discards waiting messages
alice takes /topics/forced
bob takes /elsewhere
bob publishes 1 to /topics/forced
bob -> /service/topics {"data": {"erase": "/topics/forced", "forceDestroy": true}}
bob <- /service/topics ok
alice -> /meta/connect {"ext": {"ack": 1}}
alice <- /topics/forced {"data": null, "ext": {"delivery": {"state": "ERASED", ...}}}
         /meta/connect ok {"ext": {"ack": 2}}

# An administrative publish configures a topic and delivers nothing
alice takes /topics/kept/**
bob takes /elsewhere
bob -> /topics/kept/one {"data": null, "ext": {"delivery": {"administrative": true, "topic": {"readonly": true}}}}
bob <- /topics/kept/one ok {"ext": {"delivery": {"state": "OK"}}}
bob -> /service/topics {"data": {"list": "/topics/kept/*"}}
bob <- /service/topics ok
bob -> /meta/connect {"ext": {"ack": 1}}
bob <- /service/topics {"successful": true, "data": {"topics": [{"channel": "/topics/kept/one", "state": "UNREFERENCED", "destroyDelay": -1, "readonly": true, ...}], "next": null}, ...}
       /meta/connect ok {"ext": {"ack": 2}}
alice -> /meta/connect {"ext": {"ack": 1}, "advice": {"timeout": 0}}
alice <- /meta/connect ok {"ext": {"ack": 2}, ...}
