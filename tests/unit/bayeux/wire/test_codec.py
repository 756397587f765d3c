"""Bytes to messages and back; whatever the bytes are, nothing but `RequestRefused` is raised."""

import json
import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.bayeux.wire.codec import Json, RequestLimits, decode, ext_of
from holdfast.bayeux.wire.errors import ErrorReply, RequestRefused
from holdfast.bayeux.wire.unfit import Unfit
from holdfast.delivery.basics.json_text import to_json
from holdfast.settings.limits import LimitSettings
from tests.unit.bayeux.json_oracle import in_doubles

LIMITS = RequestLimits(LimitSettings())


def refusal(body: bytes, limits: RequestLimits = LIMITS) -> ErrorReply | None:
    try:
        decode(body, limits)
    except RequestRefused as refused:
        return refused.error
    return None


def faults(body: bytes, limits: RequestLimits = LIMITS) -> list[ErrorReply | None]:
    """The fault of each message, or None."""
    return [each.fault if isinstance(each, Unfit) else None for each in decode(body, limits)]


def nested(depth: int, *, opening: str = "[", closing: str = "]") -> bytes:
    """A message with this many levels of arrays or objects, itself included."""
    inner = depth - 1
    core = '"a":' if opening == "{" else ""
    return ('{"a":' + (opening + core) * inner + "1" + closing * inner + "}").encode()


def test_an_array_of_objects_is_a_list_of_messages() -> None:
    assert decode(b'[{"a":1},{"b":[2]}]', LIMITS) == [{"a": 1}, {"b": [2]}]


def test_a_single_object_is_one_message() -> None:
    assert decode(b' {"a": 1}\n', LIMITS) == [{"a": 1}]


def test_the_last_value_of_a_repeated_field_counts() -> None:
    assert decode(b'{"a":1,"a":2}', LIMITS) == [{"a": 2}]


def test_text_beyond_ascii_arrives_as_it_is() -> None:
    body = '{"a":"ä€😀\\ud83d\\ude00\\u2028"}'.encode()
    assert decode(body, LIMITS) == [{"a": "ä€😀😀\u2028"}]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"[]",
        b"[",
        b'[{"a":1}',
        b'{"a":1},',
        b'{"a":1}{"a":1}',
        b"not json",
        b"null",
        b"1",
        b'"text"',
        b"[[]]",
        b'[{"a":1},2]',
        b'[{"a":1},null]',
        b"{'a':1}",
        b'{"a":01}',
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"a":-Infinity}',
        b'{"a":"\xff"}',
        b'{"a":"\xed\xa0\x80"}',
        b'{"a":"\x00"}',
        b'\xef\xbb\xbf{"a":1}',
        '{"a":1}'.encode("utf-16"),
        b'{"a":"unfinished',
    ],
)
def test_bytes_that_are_not_messages_are_malformed(body: bytes) -> None:
    assert refusal(body) is ErrorReply.REQUEST_MALFORMED


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (b"", "an empty body"),
        (b" \n", "an empty body"),
        (b"[]", "no messages"),
        (b"nothing", "not JSON at byte 0"),
        (b' {"channel": /a}', "not JSON at byte 13"),
        ('{"é€😀": x}'.encode(), "not JSON at byte 14"),
        (b'[{"a":"\\ud800"},{"a":01}]', "not JSON at byte 22"),
        (b'{"a":1}{}', "not JSON at byte 7"),
        (b'[{"a":1}', "not JSON at byte 8"),
        (b"[1", "not JSON at byte 2"),
        (b"[1, {]", "not JSON at byte 5"),
        (b"[1, 1e400]", "message 1 is not an object"),
        (b'[{"a":"\\ud800"},7,8]', "message 2 is not an object"),
        (b'[{"a":"unfinished', "not JSON at byte 6"),
        (b'{"a":"\xff"}', "not UTF-8 at byte 6"),
        (b'[{"a":NaN}]', "NaN is not JSON"),
        (b"[" * 10_000, "nested too deep to be read"),
        (b"[{},{},5,6]", "message 3 is not an object"),
        (b'[{"a":"\\ud800"},[]]', "message 2 is not an object"),
        (b"message=%5B%5D", "a form where JSON was expected"),
    ],
)
def test_the_refusal_of_what_is_malformed_says_what_is_wrong_and_where(
    body: bytes, what: str
) -> None:
    with pytest.raises(RequestRefused) as refused:
        decode(body, LIMITS)
    assert str(refused.value) == f"400:{what}:request_malformed"


@given(st.binary() | st.text().map(str.encode))
def test_the_refusal_of_what_is_malformed_repeats_nothing_of_it(body: bytes) -> None:
    try:
        decode(body, LIMITS)
    except RequestRefused as refused:
        said = re.sub("[0-9]+", "N", str(refused).split(":")[1])
    else:
        return
    assert said in {
        *("not JSON at byte N", "not UTF-N at byte N", "message N is not an object", "no messages"),
        *("an empty body", "NaN is not JSON", "Infinity is not JSON", "-Infinity is not JSON"),
    }


@pytest.mark.parametrize(
    "number", [2**64 - 1, -(2**63), 10**18, -(10**18), 1_700_000_000_000_000_000, 9 * 10**18, 0]
)
def test_an_integer_of_64_bits_arrives_as_it_is(number: int) -> None:
    assert decode(json.dumps({"a": [number]}).encode(), LIMITS) == [{"a": [number]}]


@pytest.mark.parametrize("integer", [2**64, -(2**63) - 1, 10**20, 2**70 + 1, -(10**300)])
def test_an_integer_beyond_64_bits_is_the_nearest_double_as_in_browsers(integer: int) -> None:
    (message,) = decode(b'{"a":[1,%d]}' % integer, LIMITS)
    assert message == {"a": [1, float(integer)]}
    assert isinstance(message["a"][1], float)
    assert json.loads(to_json(message)) == message


@pytest.mark.parametrize(
    "value",
    ["0.12345678901234567890123", "1.0e5", "12345678901234567890123.5", "123456789012345678901e2"],
)
def test_a_number_with_many_digits_that_is_not_an_integer_is_allowed(value: str) -> None:
    assert decode(b'{"a":%s}' % value.encode(), LIMITS) == [{"a": float(value)}]


@pytest.mark.parametrize(
    "text", ["99999999999999999999999", '\\"-99999999999999999999', "1" * 5000]
)
def test_digits_in_a_text_are_not_a_number(text: str) -> None:
    body = b'{"a":"%s"}' % text.encode()
    assert decode(body, LIMITS) == [json.loads(body)]


def test_more_bytes_than_allowed_are_too_large() -> None:
    limits = RequestLimits(LimitSettings(max_request_size=10))
    assert refusal(b'{"a":1234}', limits) is None
    assert refusal(b'{"a":12345}', limits) is ErrorReply.REQUEST_TOO_LARGE


def test_more_messages_than_allowed_are_too_large() -> None:
    limits = RequestLimits(LimitSettings(max_batch=2))
    assert refusal(b"[{},{}]", limits) is None
    assert refusal(b"[{},{},{}]", limits) is ErrorReply.REQUEST_TOO_LARGE


@pytest.mark.parametrize(
    ("data", "is_allowed"),
    [
        (b"[" + b"1," * 15 + b"1]", True),
        (b"[" + b"1," * 16 + b"1]", False),
        (b'{"a":1,' + b'"b":1,' * 5 + b'"c":[]}', True),
        (b'{"a":1,' + b'"b":1,' * 6 + b'"c":[]}', False),
        (b"[[],[],[],[],1,1,1]", True),
        (b"[[],[],[],[],[],[]]", False),
        (b"[[[[[[[[1]]]]]]]]", True),
        (b"[[[[[[[[[1]]]]]]]]]", False),
        (b'"[[[[{{{{,,,,,,,,,::::::::"', True),
        (rb'"\"[[[[\\\"{{{{,,,,,,,,"', True),
        (rb'["\\",[],[],[],[],[],[],"\\"]', False),
        (b'["",' + b'"[",' * 20 + b"[]]", False),
    ],
)
def test_more_values_than_allowed_are_too_large_not_counting_characters_in_texts(
    data: bytes, is_allowed: bool
) -> None:
    found = refusal(b'{"a":%b}' % data, RequestLimits(LimitSettings(max_values=20)))
    assert found is (None if is_allowed else ErrorReply.REQUEST_TOO_LARGE)


def records(count: int) -> list[Json]:
    """Rows of a table, with commas and brackets in their texts."""
    return [
        {
            "id": n,
            "name": f"Joe [{n}]",
            "town": "York, UK",
            "price": f"{n}.00",
            "note": "as is, " * 16,
        }
        for n in range(count)
    ]


def batch(count: int) -> list[Json]:
    """Publishes of eight members each."""
    data = {"x": 0.5, "speed": 12.25, "text": "hello, [you]"}
    return [
        {"channel": "/a/b", "id": str(n), "clientId": "x" * 22, "data": {**data, "n": n}}
        for n in range(count)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("messages", "size"),
    [(batch(3_400), 2**20 * 0.3), ([{"channel": "/a", "data": records(5_400)}], 2**20 * 0.8)],
)
def test_the_largest_requests_of_ordinary_clients_are_accepted(
    messages: list[Json], size: int
) -> None:
    body = json.dumps(messages, separators=(",", ":")).encode()
    assert len(body) >= size
    assert decode(body, LIMITS) == messages


@pytest.mark.parametrize(
    "data",
    [
        b"{" + b",".join(b'"%d":%d' % (n, n) for n in range(40_000)) + b"}",
        b"[" + b"1," * 80_000 + b"1]",
        b"[" + b"[]," * 30_000 + b"1]",
        b"[" + b'{"a":1},' * 30_000 + b"1]",
        b"[" + (b"[" * 500 + b"]" * 500 + b",") * 80 + b"1]",
        b"[" + (b'{"":' * 250 + b"1" + b"}" * 250 + b",") * 160 + b"1]",
    ],
    ids=["members", "numbers", "arrays", "objects", "deep arrays", "deep objects"],
)
def test_a_request_with_very_many_values_is_too_large(data: bytes) -> None:
    assert refusal(b'{"channel":"/a","data":%b}' % data) is ErrorReply.REQUEST_TOO_LARGE


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ("{", "}")])
def test_nesting_is_allowed_up_to_its_limit(opening: str, closing: str) -> None:
    limits = RequestLimits(LimitSettings(max_depth=8))
    assert faults(nested(8, opening=opening, closing=closing), limits) == [None]
    deeper = nested(9, opening=opening, closing=closing)
    assert faults(deeper, limits) == [ErrorReply.MESSAGE_TOO_DEEP]


def test_the_array_around_the_messages_counts_as_a_level() -> None:
    limits = RequestLimits(LimitSettings(max_depth=8))
    both = b"[" + nested(7) + b"," + nested(8) + b"]"
    assert faults(both, limits) == [None, ErrorReply.MESSAGE_TOO_DEEP]


def test_brackets_side_by_side_or_in_texts_do_not_count_as_depth() -> None:
    limits = RequestLimits(LimitSettings(max_depth=8))
    assert refusal(b'{"a":[[],[],[],{},{},{}],"b":"[[[[[[[["}', limits) is None


def test_extreme_nesting_is_refused() -> None:
    assert refusal(b"[" * 40_000) is ErrorReply.REQUEST_MALFORMED
    assert refusal(nested(29_900)) is ErrorReply.REQUEST_MALFORMED
    assert refusal(b"[" * 1_000_000) is ErrorReply.REQUEST_TOO_LARGE


def test_a_deep_message_reads_the_same_after_it_is_written() -> None:
    message = decode(nested(512), LIMITS)[0]
    assert json.loads(to_json(message)) == message


def test_text_is_written_as_utf_8_however_deep_it_is() -> None:
    shallow, deep = {"a": "€"}, {"a": "€", "b": decode(nested(500), LIMITS)[0]}
    assert to_json(shallow) == '{"a":"€"}'.encode()
    assert "€".encode() in to_json(deep)


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**65), 2**65),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["\ud800", "99999999999999999999", "[[[[", '"', "\\"]),
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(st.binary(max_size=60))
@example(b"\xff\xfe[\x00]\x00")
@example(b"[" * 5000 + b"1" * 30)
def test_arbitrary_bytes_are_messages_or_refused(body: bytes) -> None:
    assert refusal(body) in (None, ErrorReply.REQUEST_MALFORMED)


@pytest.mark.slow
@given(VALUES, st.data())
def test_mutated_json_is_messages_or_refused(value: object, data: st.DataObject) -> None:
    body = bytearray(json.dumps(value, ensure_ascii=data.draw(st.booleans())), "utf-8", "replace")
    for _ in range(data.draw(st.integers(0, 3))):
        place = data.draw(st.integers(0, len(body)))
        end = data.draw(st.integers(place, min(len(body), place + 3)))
        body[place:end] = data.draw(st.binary(max_size=3))
    limits = RequestLimits(LimitSettings(max_depth=8, max_batch=3))
    allowed = (None, ErrorReply.REQUEST_MALFORMED, ErrorReply.REQUEST_TOO_LARGE)
    assert refusal(bytes(body), limits) in allowed


@pytest.mark.slow
@given(st.dictionaries(st.text(max_size=3), VALUES, max_size=3))
def test_an_accepted_message_is_decoded_as_it_was_sent_and_can_be_written(
    message: dict[str, Any],
) -> None:
    body = json.dumps(message).encode()
    if refusal(body) is not None:
        assert "Infinity" in body.decode() or "NaN" in body.decode()
        return
    (decoded,) = decode(body, LIMITS)
    if not isinstance(decoded, Unfit):
        assert decoded == in_doubles(message)
        assert json.loads(to_json(decoded)) == decoded


@pytest.mark.parametrize(("opening", "closing"), ["[]", "{}"])
def test_a_message_of_the_greatest_depth_is_written_as_it_was_read(
    opening: str, closing: str
) -> None:
    body = nested(512, opening=opening, closing=closing)
    (message,) = decode(body, LIMITS)
    assert to_json(message).replace(b" ", b"") == body


@pytest.mark.parametrize(
    ("message", "ext"),
    [
        ({"ext": {"ack": 1}}, {"ack": 1}),
        ({}, {}),
        ({"ext": None}, {}),
        ({"ext": [1]}, {}),
        ({"ext": "text"}, {}),
    ],
)
def test_an_ext_that_is_no_object_counts_as_empty(message: Json, ext: Json) -> None:
    assert ext_of(message) == ext


def test_messages_without_an_ext_share_an_empty_one_that_nobody_can_change() -> None:
    assert ext_of({}) is ext_of({"ext": 1})
    with pytest.raises(TypeError):
        ext_of({})["ack"] = 1  # type: ignore[index]
