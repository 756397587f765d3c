"""Verdicts as clients send them, well-formed and not."""

import re
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.delivery.basics.error_codes import CODES, find, of_receiver
from holdfast.delivery.messages.verdicts import (
    SILENT,
    ClientVerdicts,
    Unreadable,
    Verdict,
    read_client_verdicts,
    read_verdicts,
)

MOST = 10


def read(element: object) -> Verdict:
    (verdict,) = read_verdicts([element], MOST)
    return verdict


def refusal(**said: Any) -> Verdict:
    verdict = read({"seq": 7, **said})
    assert not verdict.ok
    return verdict


def path_of(**said: object) -> str:
    """The path of the part that cannot be read."""
    with pytest.raises(Unreadable) as raised:
        read_client_verdicts(said, MOST)
    return str(raised.value)


def code_of(verdict: Verdict) -> str:
    assert verdict.code is not None
    return verdict.code.text


def test_a_verdict_with_state_ok_is_read_as_ok() -> None:
    assert read({"seq": 7, "state": "OK"}) == Verdict(7, ok=True)
    assert read({"seq": 7, "state": "OK", "errorCode": None, "delay": 5}) == Verdict(7, ok=True)


@pytest.mark.parametrize("seq", [7.0, -1.0, 0.0, 1e300])
def test_the_seq_of_a_verdict_may_have_a_decimal_point(seq: float) -> None:
    verdict = read({"seq": seq, "state": "OK"})
    assert type(verdict.seq) is int
    assert verdict.seq == seq


def test_a_refusal_has_its_code_and_its_text() -> None:
    verdict = refusal(errorCode="user.update.holdback", message="disk full")
    assert verdict == (7, False, find("user.update.holdback"), "disk full", None)


def test_a_refusal_needs_no_text() -> None:
    assert refusal(errorCode="user.update.error").text == ""
    assert refusal(errorCode="user.update.error", message=None).text == ""


def test_a_verdict_with_state_ok_and_an_error_code_is_a_refusal() -> None:
    assert code_of(refusal(state="OK", errorCode="user.clientCode")) == "user.clientCode"


@pytest.mark.parametrize("element", [None, 7, "OK", [], ["seq", 7]], ids=repr)
def test_a_verdict_that_is_no_object_is_unreadable(element: object) -> None:
    assert path_of(verdicts=[{"seq": 1, "state": "OK"}, element]) == "verdicts[1]"


@pytest.mark.parametrize("seq", ["7", 7.5, True, None, [7], {"seq": 7}, float("inf")], ids=repr)
def test_a_verdict_without_a_whole_number_as_seq_is_unreadable(seq: object) -> None:
    assert path_of(verdicts=[{"seq": seq, "state": "OK"}]) == "verdicts[0].seq"
    assert path_of(verdicts=[{"state": "OK"}]) == "verdicts[0].seq"


@pytest.mark.parametrize(
    ("said", "part"),
    [
        ({"message": ["no", "text"]}, ".message"),
        ({"message": 0}, ".message"),
        ({"delay": "2500"}, ".delay"),
        ({"delay": -1}, ".delay"),
        ({"delay": True}, ".delay"),
        ({"delay": float("nan")}, ".delay"),
        ({"errorcode": "user.update.holdback"}, ".errorcode"),
        ({"verdicts": []}, ".verdicts"),
        ({"a,b:c": 1}, ""),
        ({"": 1}, ""),
        ({"x" * 65: 1}, ""),
    ],
    ids=repr,
)
@pytest.mark.parametrize("state", ["OK", None])
def test_a_verdict_with_a_wrong_or_unknown_field_is_unreadable(
    said: dict[str, object], part: str, state: str | None
) -> None:
    assert path_of(verdicts=[{"seq": 7, "state": state, **said}]) == f"verdicts[0]{part}"


@pytest.mark.parametrize("said", [None, {}, {"seq": 1, "state": "OK"}, "OK", 7, True], ids=repr)
def test_verdicts_or_pending_that_are_no_list_are_unreadable(said: object) -> None:
    assert path_of(verdicts=said) == "verdicts"
    assert path_of(pending=said) == "pending"


@pytest.mark.parametrize("seq", ["7", 7.5, True, None, [7]], ids=repr)
def test_pending_with_anything_but_whole_numbers_is_unreadable(seq: object) -> None:
    assert path_of(pending=[1, 2.0, seq, None]) == "pending[2]"


def test_too_many_verdicts_are_unreadable_as_a_whole() -> None:
    verdicts = [{"seq": 1, "state": "OK"}] * (MOST + 1)
    assert path_of(verdicts=verdicts) == "verdicts"
    assert len(read_verdicts(verdicts[1:], MOST)) == MOST


def test_a_client_with_neither_verdicts_nor_pending_is_silent() -> None:
    assert read_client_verdicts({"priority": 9}, MOST) == SILENT
    assert read_client_verdicts({"verdicts": [], "pending": []}, MOST) == ClientVerdicts(
        [], frozenset()
    )
    assert read_client_verdicts({"pending": [3, 3.0, 4]}, MOST).pending == {3, 4}


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"state": "ok"},
        {"state": "ERROR", "errorCode": None},
        {"errorCode": ""},
    ],
)
def test_a_refusal_without_a_code_is_an_internal_error(said: dict[str, Any]) -> None:
    assert code_of(refusal(**said, message="why")) == "user.update.internalError"
    assert refusal(**said, message="why").text == "why"
    assert refusal(**said).text == ""


@pytest.mark.parametrize(
    ("said", "quoted"),
    [
        ("NullPointerException", "NullPointerException"),
        ("internal.nullpointer", "internal.nullpointer"),
        ("resource.db.block", "resource.db.block"),
        ("resource.db.mine", "resource.db.mine"),
        ("user.", "user."),
        ("user..empty", "user..empty"),
        ("user.pâper", "user.pâper"),
        ("user.a.b.c.d.e", "user.a.b.c.d.e"),
        ("user." + "x" * 96, "user." + "x" * 96),
        ("user.paper.empty\n", "user.paper.empty\n"),
        ("User.paper", "User.paper"),
        (17, "17"),
        (["user.update.error"], '["user.update.error"]'),
        ({"user": "update"}, '{"user":"update"}'),
    ],
    ids=repr,
)
def test_a_code_that_receivers_cannot_give_is_kept_in_the_text(said: object, quoted: str) -> None:
    verdict = refusal(errorCode=said, message="oh")
    assert code_of(verdict) == "user.update.internalError"
    assert verdict.text == f"{quoted}: oh"
    assert refusal(errorCode=said).text == quoted


def test_of_the_listed_codes_receivers_can_give_those_of_user_and_communication() -> None:
    own = ("user", "communication")
    expected = {
        text: text if text.startswith(own) else "user.update.internalError" for text in CODES
    }
    assert {text: code_of(refusal(errorCode=text)) for text in CODES} == expected


@pytest.mark.parametrize(
    ("said", "parent"),
    [
        ("user.paper.empty", "user"),
        ("user.a.b_2.c-3.D", "user"),
        ("user." + "x" * 95, "user"),
        ("user.update.paper", "user"),
        ("user.update.holdback.paper", "user.update.holdback"),
        ("user.security.authentication.badge", "user.security.authentication"),
        ("communication.printer", "communication"),
        ("communication.noConnection.printer", "communication.noConnection"),
    ],
)
def test_a_receivers_own_code_is_kept_and_has_the_nearest_listed_parent(
    said: str, parent: str
) -> None:
    verdict = refusal(errorCode=said, message="tray 2")
    assert (code_of(verdict), verdict.text) == (said, "tray 2")
    assert verdict.code is not None
    assert verdict.code.listed is CODES[parent]
    assert verdict.code.family == CODES[parent].family


def test_codes_of_the_server_alone_are_none_that_receivers_can_give() -> None:
    assert of_receiver("internal.nullpointer") is None
    assert of_receiver("user.clientCode") is CODES["user.clientCode"]


def test_the_text_of_a_refusal_is_cut_at_a_thousand_characters() -> None:
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
        (None, None),
    ],
)
def test_a_delay_is_read_as_milliseconds_up_to_a_day(delay: object, delay_s: float | None) -> None:
    assert refusal(errorCode="communication.noConnection", delay=delay).delay_s == delay_s


def test_a_delay_counts_only_with_a_code_of_communication() -> None:
    assert {text: refusal(errorCode=text, delay=1000).delay_s for text in CODES} == {
        text: 1.0 if text.startswith("communication") else None for text in CODES
    }


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
ELEMENT = st.dictionaries(
    st.sampled_from(["seq", "state", "errorCode", "message", "delay"]),
    JSON | st.sampled_from(["OK", *CODES]),
)


@pytest.mark.slow
@given(JSON | ELEMENT)
def test_any_json_is_unreadable_or_a_valid_verdict(element: object) -> None:
    verdict = path = None
    try:
        verdict = read(element)
    except Unreadable as unreadable:
        path = str(unreadable)
    if verdict is None:
        assert re.fullmatch(r"verdicts\[0\](\.[A-Za-z][A-Za-z0-9_-]{0,63})?", path or "")
        return
    assert type(verdict.seq) is int
    assert verdict.ok == (verdict.code is None)
    assert verdict.code is None or verdict.code.family in ("user", "communication")
    assert len(verdict.text) <= 1000
    assert verdict.delay_s is None or 0 <= verdict.delay_s <= 86400
    orjson.dumps(verdict.delay_s)
