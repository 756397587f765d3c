-- Work queues: each message of such a channel goes to one receiver.

transports: long-polling, websocket
! channels = {"/jobs/**": {"work_queue": true}}

# A message goes to one receiver, to the next if it is refused, and is dead if all refuse it
walter watches the dead letters
ann takes /jobs/print
ben takes /jobs/print
bob handshakes
bob publishes "one" to /jobs/print
ann -> /meta/connect {"ext": {"ack": 1}}
ann <- /jobs/print {"data": "one", "ext": {"delivery": {"seq": 1, ...}}}
       /meta/connect ok {"ext": {"ack": 2}}
ben -> /meta/connect {"ext": {"ack": 1}, "advice": {"timeout": 0}}
ben <- /meta/connect ok {"ext": {"ack": 2}, ...}
ann -> /meta/connect {"ext": {"ack": 2, "delivery": {"verdicts": [{"seq": 1, "errorCode": "user.update.error"}]}}, "advice": {"timeout": 0}}
ann <- /meta/connect ok {"ext": {"ack": 3}, ...}
ben -> /meta/connect {"ext": {"ack": 2}}
ben <- /jobs/print {"data": "one", "ext": {"delivery": {"seq": new $again, "redelivered": 1, ...}}}
       /meta/connect ok {"ext": {"ack": 3}}
walter is held
ben -> /meta/connect {"ext": {"ack": 3, "delivery": {"verdicts": [{"seq": $again, "errorCode": "user.update.error"}]}}, "advice": {"timeout": 0}}
ben <- /meta/connect ok {"ext": {"ack": 4}, ...}
walter <~ /sys/deadMessage {"data": {"content": "one", "channel": "/jobs/print", "attemptCount": 2, ...}, ...}
          /meta/connect ok {"ext": {"ack": 2}}
ann disconnects
ben disconnects
walter disconnects

# A message that found no receiver goes to the first that comes, and to it alone
bob handshakes
bob publishes "early" to /jobs/early
ann takes /jobs/early
ben takes /jobs/early
ann -> /meta/connect {"ext": {"ack": 1}}
ann <- /jobs/early {"data": "early", ...}
       /meta/connect ok {"ext": {"ack": 2}}
ben -> /meta/connect {"ext": {"ack": 1}, "advice": {"timeout": 0}}
ben <- /meta/connect ok {"ext": {"ack": 2}, ...}
ann -> /meta/disconnect {"ext": {"ack": 2}}
ann <- /meta/disconnect ok
ben disconnects
