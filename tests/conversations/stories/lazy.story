-- Lazy messages wait for others, for the next connect, or for the end of the lazy timeout.

transports: long-polling, callback-polling
! channels = {"/lazy/slow": {"lazy": true}, "/lazy/timed": {"lazy": true, "lazy_timeout": 1200}, "/lazy/wild/*": {"lazy": true}}
! max_lazy_timeout = 600

# A lazy message does not release a held connect before its timeout
pins: 58
alice handshakes
alice subscribes to /lazy/slow
alice connects
alice ~> /meta/connect
bob handshakes
bob publishes 1 to /lazy/slow
alice is held for 150 ms
alice <~ /lazy/slow {"data": 1}
         /meta/connect ok

# A channel may have a lazy timeout of its own
pins: 58
alice handshakes
alice subscribes to /lazy/timed
alice connects
alice ~> /meta/connect
bob handshakes
bob publishes 1 to /lazy/timed
alice is held for 850 ms
alice <~ /lazy/timed {"data": 1}
         /meta/connect ok

# Lazy messages gather and arrive in order
alice handshakes
alice subscribes to /lazy/slow
alice connects
alice ~> /meta/connect
bob handshakes
bob publishes 1 to /lazy/slow
bob publishes 2 to /lazy/slow
alice is held
alice <~ /lazy/slow {"data": 1}
         /lazy/slow {"data": 2}
         /meta/connect ok

# A prompt message brings the waiting lazy messages with it
alice handshakes
alice -> /meta/subscribe {"subscription": ["/lazy/slow", "/lazy/prompt"]}
alice <- /meta/subscribe ok
alice connects
alice ~> /meta/connect
bob handshakes
bob publishes "lazy" to /lazy/slow
alice is held
bob publishes "prompt" to /lazy/prompt
alice <~ /lazy/slow {"data": "lazy"}
         /lazy/prompt {"data": "prompt"}
         /meta/connect ok

# A connect that asks for no hold gets the waiting lazy messages
alice handshakes
alice subscribes to /lazy/slow
alice connects
bob handshakes
bob publishes "lazy" to /lazy/slow
alice -> /meta/connect {"advice": {"timeout": 0}}
alice <- /lazy/slow {"data": "lazy"}
         /meta/connect ok {"advice": <any>}

# A connect is held while only lazy messages wait
alice handshakes
alice subscribes to /lazy/slow
alice connects
bob handshakes
bob publishes "lazy" to /lazy/slow
alice ~> /meta/connect
alice is held for 100 ms
alice <~ /lazy/slow {"data": "lazy"}
         /meta/connect ok

# Channels below a lazy pattern are lazy
pins: 58
alice handshakes
alice subscribes to /lazy/wild/child
alice connects
alice ~> /meta/connect
bob handshakes
bob publishes 1 to /lazy/wild/child
alice is held for 150 ms
alice <~ /lazy/wild/child {"data": 1}
         /meta/connect ok

# Channels below a lazy channel are not lazy
pins: 58
alice handshakes
alice subscribes to /lazy/slow/child
alice connects
alice ~> /meta/connect
bob handshakes
bob publishes 1 to /lazy/slow/child
alice <~ /lazy/slow/child {"data": 1}
         /meta/connect ok

# Over a socket, a lazy message comes later, and the connect stays held
pins: 58
transports: websocket
alice handshakes
alice -> /meta/subscribe {"subscription": ["/lazy/slow", "/lazy/prompt"]}
alice <- /meta/subscribe ok
alice connects
alice ~> /meta/connect
bob handshakes
bob publishes 1 to /lazy/slow
alice is held for 150 ms
alice <- /lazy/slow {"data": 1}
alice is held
bob publishes 2 to /lazy/slow
bob publishes 3 to /lazy/prompt
alice <- /lazy/slow {"data": 2}
         /lazy/prompt {"data": 3}
alice is held
