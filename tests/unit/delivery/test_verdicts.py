"""Verdicts as clients send them, well-formed and not."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.delivery.error_codes import CODES, find
from app.delivery.verdicts import Verdict, normalise, parse


def refusal(**said: Any) -> Verdict:
    verdict = parse({"seq": 7, **said})
    assert verdict is not None
    assert not verdict.ok
    return verdict


def code_of(verdict: Verdict) -> str:
    assert verdict.code is not None
    return verdict.code.text


def test_ok_is_ok() -> None:
    assert parse({"seq": 7, "state": "OK"}) == Verdict(7, ok=True)


def test_a_refusal_has_its_code_and_its_text() -> None:
    verdict = refusal(errorCode="user.update.holdback", message="disk full")
    assert verdict == (7, False, find("user.update.holdback"), "disk full", None)


def test_a_refusal_needs_no_text() -> None:
    assert refusal(errorCode="user.update.error").text == ""
    assert refusal(errorCode="user.update.error", message=["no", "text"]).text == ""


def test_who_says_ok_and_refuses_refuses() -> None:
    assert code_of(refusal(state="OK", errorCode="user.clientCode")) == "user.clientCode"


@pytest.mark.parametrize(
    "element",
    [
        None,
        7,
        "OK",
        [],
        ["seq", 7],
        {},
        {"state": "OK"},
        {"seq": None, "state": "OK"},
        {"seq": "7", "state": "OK"},
        {"seq": 7.0, "state": "OK"},
        {"seq": True, "state": "OK"},
        {"seq": [7], "errorCode": "user.update.error"},
    ],
)
def test_what_does_not_name_a_delivery_is_no_verdict(element: object) -> None:
    assert parse(element) is None


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"state": "ok"},
        {"state": "ERROR", "errorCode": None},
        {"errorCode": ""},
        {"errorCode": 17},
        {"errorCode": ["user.update.error"]},
        {"errorCode": {"user": "update"}, "state": "OK"},
    ],
)
def test_without_a_code_the_receiver_has_failed_somehow(said: dict[str, Any]) -> None:
    assert code_of(refusal(**said, message="why")) == "user.update.internalError"
    assert refusal(**said, message="why").text == "why"
    assert refusal(**said).text == ""


@pytest.mark.parametrize(
    "said", ["user.unheard.of", "NullPointerException", "internal.nullpointer", "resource.db.block"]
)
def test_a_code_that_receivers_cannot_give_is_kept_in_the_text(said: str) -> None:
    verdict = refusal(errorCode=said, message="oh")
    assert code_of(verdict) == "user.update.internalError"
    assert verdict.text == f"{said}: oh"
    assert refusal(errorCode=said).text == said


@pytest.mark.parametrize("text", CODES)
def test_receivers_speak_of_themselves_and_of_the_connection(text: str) -> None:
    own = text.startswith(("user", "communication"))
    expected = text if own else "user.update.internalError"
    assert normalise(CODES[text]).text == expected
    assert code_of(refusal(errorCode=text)) == expected


def test_nothing_at_all_is_an_internal_error() -> None:
    assert normalise(None).text == "user.update.internalError"


def test_long_texts_are_cut() -> None:
    assert refusal(errorCode="user.update.error", message="x" * 1000).text == "x" * 1000
    assert refusal(errorCode="user.update.error", message="x" * 1001).text == "x" * 1000
    assert refusal(errorCode="y" * 5000, message="x").text == "y" * 1000


@pytest.mark.parametrize(
    ("delay", "delay_s"),
    [
        (0, 0.0),
        (2500, 2.5),
        (0.5, 0.0005),
        (10**400, 86400.0),
        (float("inf"), 86400.0),
        (-1, None),
        (float("nan"), None),
        (True, None),
        ("2500", None),
        (None, None),
    ],
)
def test_a_delay_is_milliseconds_within_bounds(delay: object, delay_s: float | None) -> None:
    assert refusal(errorCode="communication.noConnection", delay=delay).delay_s == delay_s


@pytest.mark.parametrize("text", CODES)
def test_a_delay_counts_for_communication_only(text: str) -> None:
    expected = 1.0 if text.startswith("communication") else None
    assert refusal(errorCode=text, delay=1000).delay_s == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
ELEMENT = st.dictionaries(
    st.sampled_from(["seq", "state", "errorCode", "message", "delay"]),
    JSON | st.sampled_from(["OK", *CODES]),
)


@given(JSON | ELEMENT)
def test_whatever_comes_is_no_verdict_or_one_that_can_be_acted_upon(element: object) -> None:
    verdict = parse(element)
    if verdict is None:
        return
    assert type(verdict.seq) is int
    assert verdict.ok == (verdict.code is None)
    assert verdict.code is None or verdict.code.family in ("user", "communication")
    assert len(verdict.text) <= 1000
    assert verdict.delay_s is None or 0 <= verdict.delay_s <= 86400
    orjson.dumps(verdict.delay_s)
