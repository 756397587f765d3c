"""Where a fuzzer begins: whatever is valid, and whatever was a finding once."""

from typing import Any

from tests.abuse.attacker import BINARY, CLOSE, HANDSHAKE, PING, frame

CLIENT = "the client's id"
_SAID = {"clientId": CLIENT}
_CONNECT = {**_SAID, "channel": "/meta/connect", "connectionType": "long-polling"}

# Every kind of message, with all that may be said besides.
MESSAGES: list[list[dict[str, Any]]] = [
    [{**HANDSHAKE, "ext": {"ack": True, "timesync": {"tc": 1}, "delivery": {"verdicts": True}}}],
    [{**HANDSHAKE, "ext": {"delivery": {"name": "joe/1", "timeout": 1000, "maxEntries": 5}}}],
    [{**_CONNECT, "advice": {"timeout": 0}, "ext": {"ack": 1}}],
    [
        {
            **_CONNECT,
            "ext": {
                "delivery": {"pending": [1], "verdicts": [{"seq": 1, "code": "user.update.error"}]}
            },
        }
    ],
    [{**_SAID, "channel": "/meta/subscribe", "subscription": ["/a", "/b/*", "/c/**"], "id": "1"}],
    [{**_SAID, "channel": "/meta/unsubscribe", "subscription": "/a", "id": 2}],
    [{**_SAID, "channel": "/a", "data": {"text": "hello", "n": [1, 2.5, None]}, "id": "3"}],
    [
        {
            **_SAID,
            "channel": "/a",
            "data": 1,
            "ext": {"delivery": {"key": "k", "lifeTime": 1000, "priority": 5}},
        }
    ],
    [
        {
            **_SAID,
            "channel": "/service/chat/private",
            "data": {"room": "/r", "user": "joe", "chat": "hi", "peer": "ann"},
        }
    ],
    [
        {
            **_SAID,
            "channel": "/service/delivery",
            "data": {"verdicts": [{"seq": 1, "code": "user.update.holdback"}]},
        }
    ],
    [
        {
            **_SAID,
            "channel": "/service/admin",
            "data": {"command": "client/joe/1/?dispatcherActive=true"},
        }
    ],
    [
        {**_SAID, "channel": "/chat/demo", "data": {"user": "joe", "chat": "hi"}},
        {**_SAID, "channel": "/a", "data": 1},
    ],
    [{**_SAID, "channel": "/meta/disconnect", "ext": {"ack": 1, "delivery": {"end": True}}}],
]

# JSON that was a finding: it failed the request, killed a socket, or stopped the server.
TEXTS: list[bytes] = [
    b'[{"channel":"/a","data":100000000000000000000}]',
    b'[{"channel":"/a","data":"\\ud83d"}]',
    b'[{"channel":"/a","data":1e400}]',
    b'[{"channel":"/a","data":NaN}]',
    b'[{"channel":"/a","data":' + b"[" * 600 + b"]" * 600 + b"}]",
    b'[{"channel":"/a","data":' + b"9" * 5000 + b"}]",
    b'[{"channel":{"a":1},"clientId":[],"id":{"":{}}}]',
    b'[{"channel":"/meta/handshake","version":"1.0","supportedConnectionTypes":[[]]}]',
    b'[{"channel":"/service/delivery","data":{"verdicts":[{"seq":"5"}]}}]',
    b'[{"channel":"/meta/connect","ext":{"ack":true}}]',
    b'[{"channel":"/meta/subscribe","subscription":{"0":"/a"}}]',
    b"[" * 5000,
    b'{"channel":"/a","channel":"/b","data":1,"data":2}',
    b"\xef\xbb\xbf[]",
]

# Frames that were a finding: without a mask, with codes that are none, empty, cut into pieces.
FRAMES: list[bytes] = [
    frame(b"[{}]", is_masked=False),
    frame(b"x" * 70_000, is_masked=False),
    frame(b"\x03\xee", CLOSE),
    frame(b"\x13\x88", CLOSE),
    frame(b"\x03", CLOSE),
    frame(b"", is_final=False) + frame(b"", 0x0, is_final=False) * 20 + frame(b"[]", 0x0),
    frame(b"x" * 125, PING) * 20,
    frame(b"[{}]", BINARY),
    b"\x81\xff" + b"\x7f" * 8 + b"\0" * 4,
    b"\xc1\x80\0\0\0\0",
]
