"""What clients said within a session, over HTTP and sockets: messages themselves.

Expected is the error of the last reply, or that of the whole request; nothing if it succeeds. The
session has subscribed to `/a`, acknowledges, and gives verdicts.
"""

from typing import Any

import orjson

from tests.fuzz.corpus.finding import (
    CLIENT,
    CONNECT,
    DONE,
    MALFORMED,
    TOO_LARGE,
    TOO_MANY,
    UNKNOWN,
    Finding,
    text,
)
from tests.fuzz.corpus.options import HANDSHAKES, OPTIONS, RESERVED, VERDICTS


def _published(data: bytes) -> bytes:
    return b'[{"channel":"/a","clientId":"%b","data":%b}]' % (CLIENT.encode(), data)


VALUES = [
    Finding(
        "JSON.stringify(1e20): refused the request", _published(b"100000000000000000000"), DONE
    ),
    Finding("2^64: closed the socket", _published(b"18446744073709551616"), DONE),
    Finding(
        "text.slice() through an emoji: closed the socket",
        _published(b'"\\ud83d"'),
        "400::text_invalid",
    ),
    Finding("a lone surrogate in a name", _published(b'{"\\udfff":1}'), "400::text_invalid"),
    Finding(
        "a pair of surrogates the wrong way round",
        _published(b'"\\udc00\\ud800"'),
        "400::text_invalid",
    ),
    Finding("a number that no double holds", _published(b"1e400"), "400::number_invalid"),
    Finding("more digits than Python reads", _published(b"9" * 5000), "400::number_invalid"),
    Finding("NaN, which Python reads and nobody else", _published(b"NaN"), MALFORMED),
    Finding("-Infinity, likewise", _published(b"-Infinity"), MALFORMED),
    Finding(
        "deeper than recursion goes", _published(b"[" * 600 + b"]" * 600), "400::message_too_deep"
    ),
    Finding(
        "arrays as deep as orjson writes beyond its memory",
        _published(b"[" * 250 + b"1.7976931348623157e308" + b",1.7976931348623157e308]" * 250),
        DONE,
    ),
    Finding(
        "values that take long to make", _published(b"[" + b"{}," * 40_000 + b"{}]"), TOO_LARGE
    ),
    Finding("nothing but brackets", b"[" * 5000, MALFORMED),
    Finding("a byte order mark", b"\xef\xbb\xbf" + _published(b"1"), MALFORMED),
    Finding("bytes that are no UTF-8", _published(b'"\xff"'), MALFORMED),
    Finding("a surrogate as bytes", _published(b'"\xed\xbf\xbf"'), MALFORMED),
    Finding("an overlong character", _published(b'"\xc0\xaf"'), MALFORMED),
    Finding("zero as text", _published(b'"\\u0000"'), DONE),
    Finding("line ends of scripts", _published(b'"\\u2028\\u2029</script>"'), DONE),
    Finding(
        "names of every object in JavaScript",
        _published(b'{"__proto__":{"x":1},"constructor":1}'),
        DONE,
    ),
    Finding("a name twice", b'[{"channel":"/b",' + _published(b"1")[2:], DONE),
    Finding("no array", b'"[]"', MALFORMED),
    Finding("an empty batch", b"[]", MALFORMED),
    Finding("a batch of what is no object", b"[{},null]", MALFORMED),
    Finding("two values", b"[{}][{}]", MALFORMED),
    Finding("more messages than a batch has", b"[" + b"{}," * 5000 + b"{}]", TOO_MANY),
]

FIELDS = [
    Finding("no data", text("/a"), "400::data_missing"),
    Finding(
        "an id that is an object: the reply failed",
        text("/a", data=1, id={"": {}}),
        "405::message_id_invalid",
    ),
    Finding("an id with quotes", text("/a", data=1, id='"<script>'), DONE),
    Finding("an id with a zero in it", text("/a", data=1, id="a\0"), "405::message_id_invalid"),
    Finding("an id below zero", text("/a", data=1, id=-1), "405::message_id_invalid"),
    Finding(
        "a channel that is an object: looked up in a table",
        text({"a": 1}, data=1),
        "405::channel_invalid",
    ),
    Finding("a channel of nothing", text("", data=1), "405::channel_invalid"),
    Finding("a channel with a zero in it", text("/a\0", data=1), "405::channel_invalid"),
    Finding("a channel that ends with a slash", text("/a/", data=1), DONE),
    Finding(
        "a channel with more segments than are looked up",
        text("/x" * 65, data=1),
        "405::channel_invalid",
    ),
    Finding("a pattern", text("/a/*", data=1), "405::channel_invalid"),
    Finding(
        "a client id that is a list: no key of a table",
        b'[{"channel":"/a","clientId":[],"data":1}]',
        UNKNOWN,
    ),
    Finding(
        "somebody else's client id",
        b'[{"channel":"/a","clientId":"' + b"f" * 32 + b'","data":1}]',
        UNKNOWN,
    ),
    Finding(
        "a client id called like a property",
        b'[{"channel":"/a","clientId":"__proto__","data":1}]',
        UNKNOWN,
    ),
    Finding("ext that is no object", text("/a", data=1, ext=[1]), "400::ext_invalid"),
    Finding(
        "advice that is no object",
        text("/meta/connect", **{**CONNECT, "advice": [0]}),
        "400::advice_invalid",
    ),
    Finding(
        "advice for the receivers: never come back",
        text("/a", data=1, advice={"reconnect": "none"}),
        DONE,
    ),
    Finding(
        "an advised timeout that no clock has",
        text("/meta/connect", connectionType="long-polling", advice={"timeout": -1}),
        DONE,
    ),
    Finding(
        "a connection type that is a list",
        text("/meta/connect", connectionType=[], advice={"timeout": 0}),
        DONE,
    ),
    Finding(
        "a meta channel that there is not",
        text("/meta/nothing", data=1),
        "400:/meta/nothing:not_supported",
    ),
    Finding(
        "a meta channel, spelt with a slash behind it",
        text("/meta/connect/", **CONNECT),
        "400:/meta/connect/:not_supported",
    ),
    Finding(
        "the system's own channel",
        text("/sys/sessions", data=1),
        "403:denied_by_security_policy:publish_denied",
    ),
    Finding(
        "a room called like a property of objects",
        text("/chat/constructor", data={"user": "toString", "chat": "hi"}),
        DONE,
    ),
    Finding("a chat that is no object: threw in each page", text("/chat/demo", data=[None]), DONE),
    Finding(
        "a whisper to nobody in particular",
        text("/service/chat/private", data={"user": {}, "peer": [], "room": None}),
        "403:private:publish_denied",
    ),
]

SUBSCRIPTIONS = [
    Finding(
        "a subscription that is an object",
        text("/meta/subscribe", subscription={"0": "/a"}),
        "403::subscription_invalid",
    ),
    Finding(
        "an array of nothing",
        text("/meta/subscribe", subscription=[]),
        "403::subscription_invalid",
    ),
    Finding("none", text("/meta/subscribe"), "403::subscription_missing"),
    Finding(
        "a bad third one: nothing is subscribed",
        text("/meta/subscribe", subscription=["/b", "/c", "d"]),
        "403::subscription_invalid",
    ),
    Finding(
        "everything within meta channels",
        text("/meta/subscribe", subscription="/meta/**"),
        "403:denied_by_security_policy:create_denied",
    ),
    Finding(
        "a pattern around what is closed",
        text("/meta/subscribe", subscription="/sys/**"),
        "403:denied_by_security_policy:subscribe_denied",
    ),
    Finding(
        "stars in the middle",
        text("/meta/subscribe", subscription="/a/**/b"),
        "403::subscription_invalid",
    ),
    Finding(
        "a pattern as deep as may be: slow to look up",
        text("/meta/subscribe", subscription="/x" * 63 + "/**"),
        DONE,
    ),
    Finding(
        "names of every object in JavaScript",
        text("/meta/subscribe", subscription=["/__proto__", "/constructor", "/toString"]),
        DONE,
    ),
    Finding(
        "more than a session may have",
        text("/meta/subscribe", subscription=["/b"] * 10_001),
        "413:10000:subscriptions_exceeded",
    ),
    Finding(
        "an array that comes back with its refusal",
        text("/meta/subscribe", subscription=[[[1.5] * 8]] * 8),
        "403::subscription_invalid",
    ),
    Finding(
        "what nobody has subscribed to",
        text("/meta/unsubscribe", subscription="/nobody/has"),
        "400::channel_missing",
    ),
    Finding(
        "leaving meta channels",
        text("/meta/unsubscribe", subscription="/meta/connect"),
        "403::unsubscribe_failed",
    ),
]

_COMMANDS: list[Any] = [
    {"command": "client/joe/1/?killSession"},
    {"command": "?" + "x" * 5000},
    {"command": {}},
    None,
    [],
]

COMMANDS = [
    *[
        Finding(
            "a command by who is no operator",
            text("/service/admin", data=data),
            "403:denied_by_security_policy:publish_denied",
        )
        for data in _COMMANDS
    ],
    Finding(
        "a service called like a property of objects", text("/service/constructor", data={}), DONE
    ),
    Finding("a service that is a pattern", text("/service/**", data={}), "405::channel_invalid"),
]

BATCHES = [
    Finding(
        "two connects with one id: the held one was lost",
        orjson.dumps([{"channel": "/meta/connect", "clientId": CLIENT, **CONNECT, "id": "1"}] * 2),
        "409::connect_superseded",
    ),
    Finding(
        "an own message in front of another's",
        text("/a", data=1)[:-1] + b',{"channel":"/a","data":1,"clientId":"' + b"f" * 32 + b'"}]',
        UNKNOWN,
    ),
    Finding(
        "publishes behind a goodbye",
        text("/meta/disconnect")[:-1] + b"," + text("/a", data=1)[1:],
        UNKNOWN,
    ),
    Finding(
        "a publish between messages that are refused",
        _published(b'"\\ud800"')[:-1] + b',{"channel":{}},' + text("/a", data=1)[1:],
        DONE,
    ),
    Finding(
        "two thousand subscribes: 6.5 s in which nobody was served",
        orjson.dumps(
            [
                {"channel": "/meta/subscribe", "clientId": CLIENT, "subscription": f"/s/{n}"}
                for n in range(2000)
            ]
        ),
        DONE,
    ),
    Finding(
        "five thousand messages without a session",
        b"[" + b",".join([b"{}"] * 5000) + b"]",
        "400::channel_missing",
    ),
]

MESSAGES = [
    *VALUES,
    *FIELDS,
    *SUBSCRIPTIONS,
    *VERDICTS,
    *OPTIONS,
    *RESERVED,
    *HANDSHAKES,
    *COMMANDS,
    *BATCHES,
]
