"""Messages that are valid, of every kind: where a fuzzer begins."""

from typing import Any

from tests.abuse.attacker import HANDSHAKE
from tests.fuzz.corpus.finding import CLIENT, REFUSAL

_SAID = {"clientId": CLIENT}
_CONNECT = {**_SAID, "channel": "/meta/connect", "connectionType": "long-polling"}

# Every kind of message, with all that may be said besides.
VALID: list[list[dict[str, Any]]] = [
    [{**HANDSHAKE, "ext": {"ack": True, "timesync": {"tc": 1}, "delivery": True}}],
    [{**HANDSHAKE, "ext": {"delivery": {"session": "joe/1", "timeout": 1000}}}],
    [{**_CONNECT, "advice": {"timeout": 0}, "ext": {"ack": 1}}],
    [
        {
            **_CONNECT,
            "ext": {
                "delivery": {
                    "pending": [1],
                    "verdicts": [REFUSAL],
                }
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
            "data": {"verdicts": [{"seq": 1, "errorCode": "user.update.holdback"}]},
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
