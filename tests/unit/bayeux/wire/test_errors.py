"""The table of errors, and how a refusal fills a reply."""

import tomllib
from collections import Counter
from pathlib import Path

from holdfast.bayeux.wire.errors import ErrorReply, Refused, RequestRefused, anchor_of
from holdfast.delivery.basics.notices import NOTICE_KINDS

ROOT = Path(__file__).parents[4]
EXPLAINED = ROOT / "app/bayeux/wire/errors.toml"
PAGE = ROOT / "docs/reference/error-codes.md"


def test_every_error_has_a_unique_text_and_name() -> None:
    texts = Counter(error.wire() for error in ErrorReply)
    assert [text for text, times in texts.items() if times > 1] == []
    names = Counter(error.value[1] for error in ErrorReply)
    assert [name for name, times in names.items() if times > 1] == []


def test_every_row_is_named_after_its_text_and_has_a_code_from_400_to_599() -> None:
    for error in ErrorReply:
        assert error.name == error.value[1].upper()
        assert 400 <= error.code <= 599


def test_the_wire_form_of_an_error_has_code_arguments_and_text() -> None:
    assert ErrorReply.SESSION_UNKNOWN.wire() == "402::session_unknown"
    assert ErrorReply.PUBLISH_DENIED.wire("because") == "403:because:publish_denied"
    assert ErrorReply.MESSAGE_TOO_LARGE.wire("1", "2") == "413:1,2:message_too_large"


def test_every_row_is_explained_and_nothing_else_is() -> None:
    explained = tomllib.loads(EXPLAINED.read_text("utf-8"))
    assert explained.keys() == {error.reason for error in ErrorReply}
    for texts in explained.values():
        assert texts.keys() == {"means", "why", "do"}
        assert all(len(text) > 10 for text in texts.values())


def test_an_error_as_it_was_sent_leads_to_its_place_on_the_page() -> None:
    for error in ErrorReply:
        for arguments in ((), ("a",), ("user.a", "b: c")):
            assert anchor_of(error.wire(*arguments)) == error.anchor
    heading = f"### {ErrorReply.SESSION_UNKNOWN.anchor[1:].replace('-', ' ')}\n"
    assert heading in PAGE.read_text("utf-8")


def test_the_log_names_places_that_are_on_the_page() -> None:
    places = {error.anchor for error in ErrorReply}
    named = [f"#{kind.error}" for kind in NOTICE_KINDS if kind.error]
    assert len(named) >= 5
    assert {*named} <= places


def test_a_refusal_fills_the_reply_with_its_error() -> None:
    reply = {"channel": "/a", "successful": True}
    errors = Counter[str]()
    Refused(ErrorReply.DATA_MISSING).fill(reply, errors)
    assert errors == {"data_missing": 1}
    assert reply == {"channel": "/a", "successful": False, "error": "400::data_missing"}


def test_a_refusal_can_add_advice_and_ext_to_the_reply() -> None:
    reply = {"ext": {"a": 1, "b": 1}}
    advice = {"reconnect": "none"}
    Refused(ErrorReply.CREATE_DENIED, "why", advice=advice, ext={"b": 2}).fill(reply, Counter())
    assert reply == {
        "successful": False,
        "error": "403:why:create_denied",
        "advice": {"reconnect": "none"},
        "ext": {"a": 1, "b": 2},
    }


def test_a_refused_request_reads_as_its_error() -> None:
    refused = RequestRefused(ErrorReply.REQUEST_TOO_LARGE)
    assert refused.error.code == 413
    assert str(refused) == "413::request_too_large"
