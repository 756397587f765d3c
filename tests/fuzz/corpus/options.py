"""What clients said beside their messages: verdicts, acks, options, and what handshakes agree on.

Expected is as for messages.
"""

from typing import Any

import orjson

from holdfast.bayeux.wire.terms import NAME_INVALID
from tests.abuse.attacker import HANDSHAKE
from tests.fuzz.corpus.finding import CLIENT, CONNECT, DONE, REFUSAL, Finding, text

_UNREADABLE = "400:user.illegalArgument,{}:delivery_invalid"
_NO_NAME = _UNREADABLE.format(NAME_INVALID)
_NO_EXT = "400:user.illegalArgument,{}:ext_invalid"


def _said(channel: str, delivery: Any, **ext: Any) -> bytes:
    return text(channel, **_FIELDS[channel], ext={**ext, "delivery": delivery})


_FIELDS: dict[str, dict[str, Any]] = {
    "/meta/connect": CONNECT,
    "/meta/disconnect": {},
    "/meta/subscribe": {"subscription": "/b"},
    "/b": {"data": 1},
    "/service/any": {"data": 1},
    "/service/delivery": {"data": [{"seq": 2, "state": "OK"}]},
}

# Consent was what could not be read: the ack beside it settled the messages that were refused.
_VERDICTS: list[tuple[Any, str]] = [
    ({"verdicts": [{**REFUSAL, "seq": "1"}]}, "verdicts[0].seq"),
    ({"verdicts": [{**REFUSAL, "seq": 1.5}]}, "verdicts[0].seq"),
    ({"verdicts": [{**REFUSAL, "seq": True}]}, "verdicts[0].seq"),
    ({"verdicts": [{"errorCode": "user.update.error"}]}, "verdicts[0].seq"),
    ({"verdicts": [{"seq": 2, "state": "OK"}, {"seq": None}]}, "verdicts[1].seq"),
    ({"verdicts": [{"seq": 1, "state": "OK", "errorcode": "x"}]}, "verdicts[0].errorcode"),
    ({"verdicts": [{**REFUSAL, "delay": "soon"}]}, "verdicts[0].delay"),
    ({"verdicts": [{**REFUSAL, "delay": -1}]}, "verdicts[0].delay"),
    ({"verdicts": [REFUSAL, None]}, "verdicts[1]"),
    ({"verdicts": [[REFUSAL]]}, "verdicts[0]"),
    ({"verdicts": REFUSAL}, "verdicts"),
    ({"verdicts": None}, "verdicts"),
    ({"verdicts": "OK"}, "verdicts"),
    ({"verdicts": [{"seq": 1, "state": "OK"}] * 10_001}, "verdicts"),
    ({"pending": 1}, "pending"),
    ({"pending": ["1"]}, "pending[0]"),
    ({"pending": [1, True]}, "pending[1]"),
    ({"verdicts": [REFUSAL], "pending": {}}, "pending"),
]

VERDICTS = [
    *[
        Finding(
            f"a verdict on {channel} that counted as consent",
            _said(channel, said, ack=1),
            _UNREADABLE.format(part),
        )
        for channel in (
            "/meta/connect",
            "/meta/subscribe",
            "/b",
            "/service/delivery",
            "/meta/disconnect",
        )
        for said, part in _VERDICTS
    ],
    *[
        Finding(
            "verdicts that were published as what they are not",
            text("/service/delivery", data=data),
            _UNREADABLE.format(part),
        )
        for data, part in [
            ({"verdicts": REFUSAL}, "verdicts"),
            ({"verdicts": [REFUSAL], "pending": [1]}, "pending"),
            ([REFUSAL, {"seq": "2", "state": "OK"}], "verdicts[1].seq"),
            ("OK", "verdicts"),
            (None, "verdicts"),
        ]
    ],
    Finding(
        "a message that comes back at once: 15,904 hand-overs in 3 s",
        _said(
            "/meta/connect", {"verdicts": [{**REFUSAL, "errorCode": "communication", "delay": 0}]}
        ),
        DONE,
    ),
    Finding(
        "a verdict on what was never sent",
        _said("/meta/connect", {"verdicts": [{"seq": 2**53, "state": "OK"}]}),
        DONE,
    ),
    Finding(
        "a delay that no date tells",
        _said("/meta/connect", {"verdicts": [{**REFUSAL, "delay": 1e300}]}),
        DONE,
    ),
    Finding(
        "9,900 verdicts that hold back: 86 s in which nobody was served",
        _said(
            "/meta/connect",
            {"verdicts": [{"seq": n, "errorCode": "user.update.holdback"} for n in range(1, 3001)]},
        ),
        DONE,
    ),
]

_NO_NUMBERS: list[Any] = [True, False, "1", 1.5, None, [], [1], {}, {"ack": 1}]
_NO_OBJECTS: list[Any] = [True, 7, "true", [], [REFUSAL]]

OPTIONS = [
    *[
        Finding(
            "an ack that is none settled the batch",
            _said("/meta/connect", {}, ack=ack),
            _NO_EXT.format("ack"),
        )
        for ack in _NO_NUMBERS
    ],
    *[
        Finding("an ack of no batch settles nothing", _said("/meta/connect", {}, ack=ack), DONE)
        for ack in (-1, 999, -(2**63), 2**64 - 1, 1e308)
    ],
    *[
        Finding(
            "timesync that is no object",
            _said("/meta/connect", {}, timesync=said),
            _NO_EXT.format("timesync"),
        )
        for said in (1, [1], "now", None)
    ],
    *[
        Finding(
            "options that are no object",
            _said("/meta/connect", said),
            _UNREADABLE.format("delivery"),
        )
        for said in _NO_OBJECTS
    ],
    Finding(
        "an option that there is not was ignored",
        _said("/meta/connect", {"verdict": [REFUSAL]}),
        _UNREADABLE.format("verdict"),
    ),
    Finding(
        "the same for a publish",
        _said("/b", {"lifetime": 5}),
        "400:user.publish,lifetime:delivery_invalid",
    ),
    Finding(
        "a priority that is a text",
        _said("/b", {"priority": "9"}),
        "400:user.publish,priority:delivery_invalid",
    ),
    Finding(
        "a life that no date tells",
        _said("/b", {"lifeTime": 1e300}),
        "400:user.publish,lifeTime:delivery_invalid",
    ),
    Finding(
        "a key on a service",
        _said("/service/any", {"key": "k"}),
        "400:user.publish,key:delivery_invalid",
    ),
    Finding(
        "a key that is an object", _said("/b", {"key": {}}), "400:user.publish,key:delivery_invalid"
    ),
    Finding(
        "oneway that is a number",
        _said("/meta/subscribe", {"oneway": 1}),
        _UNREADABLE.format("oneway"),
    ),
    Finding(
        "an end that is a text dropped a queue",
        _said("/meta/disconnect", {"end": "yes"}),
        _UNREADABLE.format("end"),
    ),
    Finding(
        "discarding without an end",
        _said("/meta/disconnect", {"discard": True}),
        _UNREADABLE.format("discard"),
    ),
    Finding(
        "an end on a connect", _said("/meta/connect", {"end": True}), _UNREADABLE.format("end")
    ),
]

# Answered with success although nothing happened.
RESERVED = [
    Finding(
        "replies to a message",
        text("/a", data=1, ext={"replyTo": "/b"}),
        "403:replyTo:reply_denied",
    ),
    Finding(
        "a replay for a subscriber",
        text("/meta/subscribe", subscription="/b", ext={"replay": "soon"}),
        _NO_EXT.format("replay"),
    ),
    Finding(
        "others' replies",
        text("/meta/subscribe", subscription="/ret/**"),
        "403:denied_by_security_policy:subscribe_denied",
    ),
    Finding(
        "requests at a handshake",
        orjson.dumps([{**HANDSHAKE, "ext": {"request": 1}}]),
        _NO_EXT.format("request"),
    ),
]


def _hello(**fields: Any) -> bytes:
    return orjson.dumps([{**HANDSHAKE, **fields}])


def _named(**delivery: Any) -> bytes:
    return _hello(ext={"ack": True, "delivery": delivery})


HANDSHAKES = [
    Finding(
        "connection types that are lists",
        _hello(supportedConnectionTypes=[[]]),
        "406::connection_types_unsupported",
    ),
    Finding(
        "connection types that are an object",
        _hello(supportedConnectionTypes={}),
        "406::connection_types_unsupported",
    ),
    Finding("an id of the client's choice", _hello(clientId="f" * 32), DONE),
    Finding(
        "verdicts at a handshake that cannot be read",
        _named(verdicts=[{"seq": "1"}]),
        _UNREADABLE.format("verdicts[0].seq"),
    ),
    Finding(
        "a queue that is no object", _named(session="queue/1", queue=5), _UNREADABLE.format("queue")
    ),
    Finding(
        "ten years of waiting for nobody",
        _named(session="ten/1", timeout=10 * 365 * 86_400_000),
        _UNREADABLE.format("timeout"),
    ),
    Finding(
        "a moment that no date tells",
        _named(session="late/1", timeout=1e300),
        _UNREADABLE.format("timeout"),
    ),
    Finding(
        "a name that is another key in the store",
        _named(session="a}:b/1"),
        _NO_NAME,
    ),
    Finding("a name with a line end", _named(session="a\nb/1"), _NO_NAME),
    Finding("a number that is none", _named(session="joe/one"), _NO_NAME),
    Finding("a name that is an object", _named(session={}), _NO_NAME),
    Finding("names of every object in JavaScript", _named(session="constructor/1"), DONE),
    Finding(
        "the name of an operator, without a token",
        _named(session="__sys__operator/1"),
        _NO_NAME,
    ),
    Finding(
        "a wrong token",
        _hello(ext={"authentication": {"token": "wrong"}}),
        "403:no_login:handshake_denied",
    ),
    Finding(
        "a token that is an object",
        _hello(ext={"authentication": {"token": {}}}),
        "403:no_login:handshake_denied",
    ),
    Finding(
        "a handshake in a batch",
        orjson.dumps([HANDSHAKE, {**CONNECT, "channel": "/meta/connect", "clientId": CLIENT}]),
        "400::handshake_batched",
    ),
    Finding(
        "hundreds of handshakes in one", orjson.dumps([HANDSHAKE] * 300), "400::handshake_batched"
    ),
]
