"""An unfit message is refused alone."""

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.bayeux.wire.codec import RequestLimits, decode
from holdfast.bayeux.wire.errors import ErrorReply, RequestRefused
from holdfast.bayeux.wire.unfit import Salvage, Unfit
from holdfast.delivery.basics.json_text import to_json
from holdfast.settings.limits import LimitSettings
from tests.effort import TIMES
from tests.unit.bayeux.harness import Server
from tests.unit.bayeux.json_oracle import Object, faults_of, in_doubles, messages_in

LIMITS = RequestLimits(LimitSettings())
LONE = ["\\ud800", "\\udfff", "\\udc00\\ud800", "a\\ud83d", "\\ud83d\\ud83d\\ude00", "\\\\\\uDabc"]
TOO_LARGE = ["1e400", "-1E+309", "1" * 400, "-" + "9" * 5000, "17976931348623159" + "0" * 292]


def deep(levels: int) -> str:
    return "[" * levels + "]" * levels


# Values that make a message unfit, each with its fault.
UNFIT = (
    [(f'"{text}"', ErrorReply.TEXT_INVALID) for text in LONE]
    + [(f'{{"{text}":1}}', ErrorReply.TEXT_INVALID) for text in LONE]
    + [(number, ErrorReply.NUMBER_INVALID) for number in TOO_LARGE]
    + [(deep(511), ErrorReply.MESSAGE_TOO_DEEP)]
)


def batch(*values: str) -> bytes:
    bodies = [f'{{"channel":"/a","id":"{n}","data":{value}}}' for n, value in enumerate(values)]
    return f"[ {' , '.join(bodies)} ]\n".encode()


@pytest.mark.parametrize(("value", "fault"), UNFIT)
def test_an_unfit_message_of_a_batch_is_refused_alone(value: str, fault: ErrorReply) -> None:
    before, unfit, after = decode(batch("1", value, '"ä😀"'), LIMITS)
    assert isinstance(unfit, Unfit)
    assert (unfit.fault, unfit) == (fault, {"channel": "/a", "id": "1"})
    assert (before["data"], after["data"]) == (1, "ä😀")


@pytest.mark.parametrize(("value", "fault"), UNFIT)
def test_an_unfit_message_that_is_the_whole_request_is_refused(
    value: str, fault: ErrorReply
) -> None:
    (unfit,) = decode(f'{{"id":7,"data":[{value}]}}'.encode(), LIMITS)
    assert isinstance(unfit, Unfit)
    assert (unfit.fault, unfit) == (fault, {"id": 7})


@pytest.mark.parametrize("value", ['"\\ud83d\\ude00"', '"\\\\ud800"', "1e308", "1e-400", deep(508)])
def test_a_message_that_only_looks_unfit_is_accepted(value: str) -> None:
    (message,) = decode(f'{{"data":{value}}}'.encode(), LIMITS)
    assert message == {"data": json.loads(value)}


def test_an_unfit_message_keeps_only_fields_that_can_be_written() -> None:
    body = (
        b'{"channel":"/\\ud800","id":"\\ud800","subscription":["/a"],"clientId":"x","data":1e999}'
    )
    assert decode(body, LIMITS) == [{"subscription": ["/a"], "clientId": "x"}]


@pytest.mark.parametrize(
    "body",
    [
        b'[{"a":"\\ud800"},1]',
        b'["\\ud800"]',
        b'"\\ud800"',
        b'[{"a":"\\ud800"}',
        b'[{"a":"\\ud800"},]',
        b'[{"a":"\\ud800"}]]',
        b'{"a":"\\ud800"}{}',
        b'[{"a":"\\ud800"},{"a":NaN}]',
        b'[{"a":"\\ud800"},{"a":-Infinity}]',
        b'[{"a":"\\ud800"},{"a":01}]',
        b'[{"a":"\\ud800"},{"a":"\n"}]',
        b'[{"a":"\\ud800"},{"a":"\xed\xa0\x80"}]',
        b'\xef\xbb\xbf{"a":"\\ud800"}',
    ],
)
def test_a_request_that_is_no_json_is_malformed_though_a_message_is_unfit(body: bytes) -> None:
    with pytest.raises(RequestRefused, match="request_malformed"):
        decode(body, LIMITS)


def test_a_request_with_too_many_unfit_messages_is_too_large() -> None:
    with pytest.raises(RequestRefused, match="request_too_large"):
        decode(batch(*['"\\ud800"'] * 3), RequestLimits(LimitSettings(max_batch=2)))


# Values before and after the unfit one; each request is nearly as large as it may be.
LARGE = {
    "numbers": ("1," * 64_000, "1"),
    "hard numbers": ("2.4703282292062327208e-324," * 64_000, "1"),
    "arrays": ("[]," * 21_000, "1"),
    "texts": ('"",' * 64_000, "1"),
    "a text": ('"' + "x" * (4 * 2**20 - 100) + '",', "1"),
    "emojis": ('"' + "\\ud83d\\ude00" * 340_000 + '",', "1"),
    "members": ("{" + ",".join(f'"{n}":1' for n in range(32_000)) + "},", "1"),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unfit", "fault"),
    [('"\\ud800"', ErrorReply.TEXT_INVALID), ("1e400", ErrorReply.NUMBER_INVALID)],
)
@pytest.mark.parametrize("values", LARGE.values(), ids=LARGE)
def test_an_unfit_message_of_a_very_large_request_is_refused_alone(
    values: tuple[str, str], unfit: str, fault: ErrorReply
) -> None:
    before, after = values
    body = f'[{{"id":"1","data":[{before}{unfit},{after}]}},{{"id":"2"}}]'.encode()
    message, other = decode(body, LIMITS)
    assert isinstance(message, Unfit)
    assert (message.fault, message, other) == (fault, {"id": "1"}, {"id": "2"})


@pytest.mark.slow
def test_all_messages_of_a_request_may_be_unfit() -> None:
    messages = decode(batch(*['"\\ud800"', "1e400"] * 2500), LIMITS)
    assert len(messages) == 5000
    assert all(isinstance(each, Unfit) for each in messages)


def test_salvage_pauses_several_times_within_a_request() -> None:
    salvage = Salvage(batch("1", '"\\ud800"', "2"), LIMITS.messages, LIMITS.depth)
    found = []
    while not salvage.go_on():
        found.append(len(salvage.messages))
    assert (found, len(salvage.messages)) == ([0, 1, 1, 2], 3)


def test_an_unfit_character_at_the_end_of_a_long_text_is_found() -> None:
    text = "Dear Sir, " * 20_000
    (unfit,) = decode(f'[{{"data":"{text}\\ud800"}}]'.encode(), LIMITS)
    assert isinstance(unfit, Unfit)


# Against Python's parser

TOKENS = st.sampled_from(
    [
        *("0", "-0", "-0.0", "1.5", "1e5", "1E+400", "-1e400", "1e-400", "12345678901234567890"),
        *("18446744073709551615", "18446744073709551616", "-9223372036854775809", "1" * 310),
        *("1" * 308, "1.7976931348623157e308", "1.7976931348623159e308", "0.1e309", "01", "+1"),
        *("NaN", "-Infinity", "null", "true", "nul", "[]", "{}", '"', ",", "1_000", "0x1", ".5"),
        *(f'"{text}"' for text in LONE),
        *('"\\ud83d\\ude00"', '"\\u00e9é😀"', '"\\x"', '"\t"', '"\\/\\b"', '"\\u12"', '"\x7f"'),
    ]
)
NAMES = st.sampled_from(['"channel"', '"a"', '"id"', '"a\\ud800"', '"\\u0061"', "a"])
VALUES: st.SearchStrategy[str] = st.recursive(
    TOKENS,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda parts: f"[{' , '.join(parts)}]")
        | st.lists(st.tuples(NAMES, inner), max_size=3).map(
            lambda pairs: "{" + ",".join(f"{name}: {value}" for name, value in pairs) + "}"
        )
    ),
    max_leaves=6,
)
MESSAGES = st.lists(st.tuples(NAMES, VALUES), max_size=3).map(
    lambda pairs: "{" + ",".join(f"{name}:{value}" for name, value in pairs) + "}"
)
REQUESTS = (
    VALUES | MESSAGES | st.lists(MESSAGES, max_size=4).map(lambda each: f"[{','.join(each)}]")
)


@pytest.mark.slow
@given(REQUESTS)
@settings(max_examples=80 * TIMES)
@example('[{"a":1e400,"b":"\\ud800"}]')
@example('{"a":"\\ud800","a":[1,18446744073709551616,-9223372036854775809]}')
def test_the_decoder_agrees_with_pythons_parser(request: str) -> None:
    expected = messages_in(request.encode())
    if expected is None:
        with pytest.raises(RequestRefused, match="request_malformed"):
            decode(request.encode(), LIMITS)
        return
    messages = decode(request.encode(), LIMITS)
    for message, other in zip(messages, expected, strict=True):
        agree(message, other)


def agree(message: dict[str, Any], other: Object) -> None:
    faults = faults_of(other)
    if isinstance(message, Unfit):
        assert message.fault in faults
        assert all(told == in_doubles(other[name]) for name, told in message.items())
    else:
        assert not faults
        assert repr(message) == repr(in_doubles(other))
        assert repr(json.loads(to_json(message))) == repr(message)


# What clients see


@pytest.mark.parametrize(("value", "fault"), UNFIT)
def test_clients_get_the_other_messages_of_a_request_with_an_unfit_one(
    value: str, fault: ErrorReply
) -> None:
    server = Server()
    alice, bob = server.client(), server.client()
    bob.subscribe("/a")
    say = '{{"channel":"/a","id":"{}","clientId":"{}","data":{}}}'
    body = ",".join(
        say.format(n, alice.client_id, each) for n, each in enumerate(["1", value, "3"])
    )
    replies = alice.send_bytes(f"[{body}]".encode()).replies
    assert [reply["successful"] for reply in replies] == [True, False, True]
    assert replies[1] == {"channel": "/a", "id": "1", "successful": False, "error": fault.wire()}
    assert [event["data"] for event in bob.connect().events] == [1, 3]
