"""What the backend is asked, and what its answers mean."""

from math import inf
from typing import Any, NamedTuple

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict
from pydantic import SecretStr

from holdfast.bayeux.state.backend_figures import Action
from holdfast.bayeux.wire.caller import Caller
from holdfast.bayeux.wire.login import Login, LoginMethod, Vouched
from holdfast.login.backend.breaker import PAUSE_S, Breaker
from holdfast.login.backend.questions import (
    Unclear,
    login_in,
    permission_in,
    question,
    shown_by,
    text_of,
)
from holdfast.login.failures import SaysNo
from holdfast.settings import BackendSettings

SECRET = "whsec_" + "c2VjcmV0" * 4


class Answer(NamedTuple):
    """An answer of HTTP."""

    body: bytes
    status: int = 200
    is_whole: bool = True


def answer(said: Any, status: int = 200) -> Answer:
    return Answer(orjson.dumps(said), status)


def settings(**more: Any) -> BackendSettings:
    return BackendSettings(url="https://a.example", secret=SecretStr(SECRET), **more)


def caller(*headers: tuple[str, str]) -> Caller:
    return Caller("203.0.113.7", headers=CIMultiDict(headers))


def test_an_answer_gives_a_login() -> None:
    said = {"subject": "ada", "groups": ["staff", ""], "expires_in": 60.5}
    login = login_in(answer(said), 1000.0)
    assert login == Login("ada", LoginMethod.BACKEND, frozenset({"staff"}), 1060.5, 1000.0)
    assert login_in(answer({"subject": "ada"}), 1000.0).expires_s == inf
    assert Login.of_json(login.to_json()) == login


def test_an_empty_list_of_rights_is_no_missing_one() -> None:
    assert login_in(answer({"subject": "ada", "rights": []}), 0.0).rights
    assert not login_in(answer({"subject": "ada"}), 0.0).rights


def test_an_answer_about_a_channel_allows_or_refuses() -> None:
    assert permission_in(answer({"allow": True})) is None
    assert permission_in(answer({"allow": True, "expires_in": 60})) == 60
    with pytest.raises(SaysNo, match="no"):
        permission_in(answer({"allow": False, "detail": "no"}))
    with pytest.raises(SaysNo, match=r"^$"):
        permission_in(Answer(b"<html>", 403))
    with pytest.raises(Unclear):
        permission_in(answer({"subject": "ada"}))


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists))
def test_texts_are_short_and_printable_whatever_they_were(detail: object) -> None:
    text = text_of(detail)
    assert len(text) <= 200
    assert text.isprintable()


KEYS = st.sampled_from(["subject", "groups", "rights", "expires_in", "allow", "detail", "may"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(KEYS, part, max_size=4),
)


@given(JSON, st.sampled_from([200, 200, 200, 401, 403, 302, 500]))
def test_any_answer_is_a_login_a_refusal_or_unclear(said: object, status: int) -> None:
    for read in (lambda reply: login_in(reply, 0.0), permission_in):
        try:
            read(answer(said, status))
        except (SaysNo, Unclear):
            continue
        assert status == 200
        assert isinstance(said, dict)


@given(st.binary(max_size=40))
def test_any_bytes_are_read(body: bytes) -> None:
    for read in (lambda reply: login_in(reply, 0.0), permission_in):
        with pytest.raises((SaysNo, Unclear)):
            read(Answer(body))


def test_only_named_headers_and_cookies_are_shown() -> None:
    wanted = settings(cookies=["sid", "b"], headers=["X-Key"])
    request = caller(
        ("Cookie", "a=1; sid=2; sid=3; b=x y"), ("x-key", "k"), ("Authorization", "no")
    )
    assert shown_by(request, wanted) == {"X-Key": "k", "Cookie": "sid=2; sid=3; b=x y"}
    assert shown_by(request, settings()) == {}


@pytest.mark.parametrize("value", ["a\r\nX: y", "ä", "a\x00", "\udce4"])
def test_values_that_a_header_cannot_have_are_left_out(value: str) -> None:
    wanted = settings(cookies=["sid"], headers=["X-Key"])
    assert shown_by(caller(("X-Key", value), ("Cookie", f"sid={value}")), wanted) == {}


def test_a_question_names_only_what_is_known() -> None:
    asked = question(Action.PUBLISH, caller(), {}, subject=None, channel="/a")
    body = orjson.loads(asked.body)
    assert body["type"] == "publish"
    assert body["data"] == {"address": "203.0.113.7", "channel": "/a"}
    assert body["timestamp"].endswith("Z")


@pytest.mark.parametrize(
    "said",
    [
        Vouched(Login("ada", LoginMethod.BACKEND, frozenset({"a"}), 7.5)),
        Vouched(refusal="no"),
        Vouched(refusal=""),
        Vouched(wait_s=1.5),
    ],
)
def test_what_a_door_was_told_reaches_another_worker(said: Vouched) -> None:
    assert Vouched.of_json(orjson.loads(orjson.dumps(said.to_json()))) == said


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_after_failures_one_question_tries_again() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    for _ in range(5):
        assert breaker.lets_ask()
        breaker.heard(is_answer=False)
    assert breaker.is_open
    assert not breaker.lets_ask()
    clock.now += PAUSE_S
    assert [breaker.lets_ask(), breaker.lets_ask()] == [True, False]
    breaker.heard(is_answer=False)
    assert not breaker.lets_ask()
    clock.now += PAUSE_S
    assert breaker.lets_ask()
    # The question found no place: another may try.
    breaker.gave_up()
    assert breaker.lets_ask()
    breaker.heard(is_answer=True)
    assert not breaker.is_open
    assert breaker.lets_ask()


def test_failures_count_only_in_a_row() -> None:
    breaker = Breaker(Clock())
    for _ in range(20):
        breaker.heard(is_answer=False)
        breaker.heard(is_answer=True)
    assert not breaker.is_open
