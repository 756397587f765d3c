"""A door finds out whose a request is, however its JSON is written."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bayeux.wire.caller import UNKNOWN, Caller
from holdfast.bayeux.wire.codec import RequestLimits
from holdfast.settings.limits import LimitSettings
from holdfast.web.forwarding.newcomers import Newcomers
from holdfast.web.forwarding.request_owner import greeted_id_in, owner_in, plain_id_in
from holdfast.web.websockets.socket_frames import frame
from tests.web.requests import CLIENT_ID, CONNECT, HANDSHAKE, PUBLISH, encode, ids_of_session

LIMITS = RequestLimits(LimitSettings())
OTHER_ID, _ = ids_of_session(2)
NESTED = {**PUBLISH, "data": {"clientId": OTHER_ID, "say": '"clientId"'}}


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (encode(PUBLISH), CLIENT_ID),
        (encode(PUBLISH, PUBLISH), CLIENT_ID),
        (encode(PUBLISH, {**PUBLISH, "clientId": OTHER_ID}), CLIENT_ID),
        (encode(NESTED), CLIENT_ID),
        (encode(dict(reversed(NESTED.items()))), CLIENT_ID),
        # All are refused anyway.
        (encode({"channel": "/a"}, PUBLISH), CLIENT_ID),
        (json.dumps(PUBLISH).encode(), CLIENT_ID),
        (encode(PUBLISH).replace(b"clientId", b"client\\u0049d"), CLIENT_ID),
        (encode(NESTED).replace(b"clientId", b"client\\u0049d", 1), CLIENT_ID),
        (
            encode(PUBLISH).replace(CLIENT_ID[:1].encode(), b"\\u00%x" % ord(CLIENT_ID[0])),
            CLIENT_ID,
        ),
        # The quick parser reads no half of a surrogate pair.
        (encode(PUBLISH).replace(b"hello", b"\\ud83d"), CLIENT_ID),
        (encode(PUBLISH, {**PUBLISH, "clientId": 1}).replace(b"hello", b"\\ud83d"), CLIENT_ID),
        (encode({**PUBLISH, "clientId": 7}), None),
        (encode({**PUBLISH, "clientId": None}), None),
        (b"{", None),
        (b"[]", None),
        (b"[7]", None),
        (b'"clientId"', None),
    ],
)
def test_a_request_is_that_of_the_client_of_its_first_message(
    body: bytes, found: str | None
) -> None:
    assert owner_in(body, LIMITS) == found
    assert plain_id_in(body) in (found, None)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b'{"clientId":"%b"}' % CLIENT_ID.encode(), CLIENT_ID),
        (b'{"clientId" : "%b"}' % CLIENT_ID.encode(), CLIENT_ID),
        (b'{"clientId":"%b' % CLIENT_ID.encode(), None),
        (b'{"clientId":"%b"}' % CLIENT_ID[1:].encode(), None),
        (b'{"clientId":"%b."}' % CLIENT_ID[1:].encode(), None),
        (b'{"clientId":"%b1"}' % CLIENT_ID.encode(), None),
    ],
)
def test_an_id_is_plain_if_it_has_the_form_of_ids(body: bytes, found: str | None) -> None:
    assert plain_id_in(body) == found


@given(st.permutations(sorted(NESTED)), st.booleans())
def test_the_order_of_fields_does_not_matter(names: list[str], is_ascii: bool) -> None:
    message = {name: NESTED[name] for name in names}
    assert owner_in(json.dumps([message], ensure_ascii=is_ascii).encode(), LIMITS) == CLIENT_ID


@pytest.mark.parametrize(
    "body",
    [
        encode(HANDSHAKE),
        encode(CONNECT, HANDSHAKE),
        encode(HANDSHAKE).replace(b"/", b"\\/"),
        encode(HANDSHAKE).replace(b"/meta", b"\\u002fmeta"),
        # Its number is beyond what the quick parser reads.
        encode(HANDSHAKE)[:-2] + b',"ext":{"x":1e999}}]',
        encode({**HANDSHAKE, "ext": {"x": "x" * 300_000}}),
    ],
)
def test_a_handshake_is_found_among_other_messages(body: bytes) -> None:
    assert plain_id_in(body) is None
    found = owner_in(body, LIMITS)
    assert isinstance(found, dict)
    assert found["id"] == HANDSHAKE["id"]


@pytest.mark.parametrize(
    "body",
    [
        encode(CONNECT),
        encode({**PUBLISH, "data": "/meta/handshake"}),
        b'"/meta/handshake"',
        encode(HANDSHAKE)[:-1],
        # It is refused.
        encode({**HANDSHAKE, "ext": {"x": [0] * 70_000}}),
    ],
)
def test_other_requests_have_none(body: bytes) -> None:
    assert not isinstance(owner_in(body, LIMITS), dict)


@pytest.mark.parametrize(
    "many", [b"[" + b"[]," * 1_000_000 + b"[]]", b'"' + b"[\\n," * 250_000 + b'"']
)
def test_a_request_that_may_have_too_many_values_is_not_decoded(many: bytes) -> None:
    # The first would take half a second.
    body = b'[{"clientId":"x","data":' + many + b',"more":{"clientId":1}}]'
    assert owner_in(body, LIMITS) is None


@pytest.mark.parametrize("size", [0, 100, 70_000])
def test_only_the_reply_to_its_handshake_says_which_session_a_socket_has(size: int) -> None:
    greeting = frame(encode({**HANDSHAKE, "ext": {"x": "x" * size}, "clientId": CLIENT_ID}))
    event = frame(encode({"channel": "/news", "data": {"clientId": OTHER_ID, "x": "x" * size}}))
    assert greeted_id_in(greeting + event) == CLIENT_ID
    assert greeted_id_in(event + greeting) is None


def test_a_text_may_have_as_many_brackets_as_it_likes() -> None:
    more = {**PUBLISH, "data": "[]," * 100_000, "more": {"clientId": OTHER_ID}}
    assert owner_in(encode(more), LIMITS) == CLIENT_ID


class Credentials:
    def named_by(self, handshake: Any, caller: Caller) -> str | None:
        return "eve"


@pytest.mark.parametrize(
    ("delivery", "subject"),
    [
        ({"session": "joe/1"}, "joe"),
        ({"session": "client/joe"}, "joe"),
        ({"session": {"name": "joe", "number": 2}}, "joe"),
        ({"session": ["joe"]}, None),
        ("true", None),
        (True, None),
        (False, None),
        (7, None),
    ],
)
def test_a_session_name_decides_before_credentials(delivery: Any, subject: str | None) -> None:
    handshake = {**HANDSHAKE, "ext": {"delivery": delivery}}
    assert Newcomers(None).subject_of(handshake, UNKNOWN) == subject
    assert Newcomers(Credentials()).subject_of(handshake, UNKNOWN) == (subject or "eve")


@pytest.mark.parametrize("ext", [None, 7, [], {}])
def test_a_handshake_without_a_name_has_the_subject_of_its_credentials(ext: Any) -> None:
    handshake = {**HANDSHAKE, "ext": ext}
    assert Newcomers(None).subject_of(handshake, UNKNOWN) is None
    assert Newcomers(Credentials()).subject_of(handshake, UNKNOWN) == "eve"
