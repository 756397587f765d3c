"""What the backend has decided about the channels of one login, and for how long."""

from math import inf

import pytest

from holdfast.bayeux.wire.errors import ErrorReply, Undecided
from holdfast.bayeux.wire.login import Login, LoginMethod
from holdfast.bayeux.wire.operation import Operation
from holdfast.login.backend.decisions import AskingGrants, Said
from holdfast.login.failures import Unusable
from holdfast.login.rights_file import read_rights
from holdfast.login.rules import Rules

FILE = b"""
[[rule]]
who = ["*"]
may = ["publish", "subscribe"]
channels = ["/**"]

[[rule]]
who = ["*", "anonymous"]
ask = ["publish", "subscribe"]
channels = ["/orders/**"]

[[rule]]
who = ["@guests"]
may_not = ["publish"]
channels = ["/orders/7"]
"""
SUB, PUB = Operation.SUBSCRIBE, Operation.PUBLISH
ADA = Login("ada", LoginMethod.BACKEND)
GUEST = Login("bob", LoginMethod.TOKEN, frozenset({"guests"}))


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def rules() -> Rules:
    return Rules(read_rights(FILE).rules)


@pytest.fixture
def ada(rules: Rules, clock: Clock) -> AskingGrants:
    return AskingGrants(rules, ADA, clock)


def test_an_ask_is_stronger_than_a_may_and_a_may_not_than_an_ask(
    ada: AskingGrants, rules: Rules, clock: Clock
) -> None:
    assert ada.allows(PUB, "/free")
    assert not ada.allows(PUB, "/orders/7")
    assert isinstance(ada.why_not(PUB, "/orders/7"), Undecided)
    guest = AskingGrants(rules, GUEST, clock)
    assert not guest.allows(PUB, "/orders/7")
    assert guest.why_not(PUB, "/orders/7") is None


def test_a_pattern_that_overlaps_is_asked_about(ada: AskingGrants) -> None:
    assert isinstance(ada.why_not(SUB, "/**"), Undecided)
    assert isinstance(ada.why_not(SUB, "/orders/*"), Undecided)
    assert ada.allows(SUB, "/other/*")


def test_an_answer_holds_for_its_time(ada: AskingGrants, clock: Clock) -> None:
    ada.learn((PUB, "/orders/1"), Said(is_allowed=True, ends_at=clock.now + 5))
    assert ada.allows(PUB, "/orders/1")
    assert not ada.allows(SUB, "/orders/1")
    clock.now += 5
    assert not ada.allows(PUB, "/orders/1")
    assert isinstance(ada.why_not(PUB, "/orders/1"), Undecided)


def test_refusals_and_failures_are_told_as_long_as_they_hold(
    ada: AskingGrants, clock: Clock
) -> None:
    ada.learn((SUB, "/orders/1"), Said(is_allowed=False, ends_at=clock.now + 5, text="no"))
    refused = ada.why_not(SUB, "/orders/1")
    assert refused is not None
    assert str(refused) == "403:denied_by_backend:subscribe_denied"
    assert refused.ext == {"backend": {"text": "no"}}
    ada.learn((SUB, "/orders/1"), Said(is_allowed=False, ends_at=clock.now + 5, wait_s=1.0))
    failed = ada.why_not(SUB, "/orders/1")
    assert failed is not None
    assert not isinstance(failed, Undecided)
    assert failed.error is ErrorReply.BACKEND_UNAVAILABLE
    assert failed.advice == {"reconnect": "retry", "interval": 1000}


def test_other_rules_forget_all_answers(ada: AskingGrants, rules: Rules) -> None:
    ada.learn((PUB, "/orders/1"), Said(is_allowed=True))
    rules.in_force = read_rights(FILE + b"\n").rules
    assert not ada.allows(PUB, "/orders/1")
    assert isinstance(ada.why_not(PUB, "/orders/1"), Undecided)


def test_answers_about_subscriptions_are_not_forgotten_for_others(ada: AskingGrants) -> None:
    kept = {f"/orders/kept{n}" for n in range(50)}
    for name in kept:
        ada.learn((SUB, name), Said(is_allowed=True), kept)
    for n in range(1000):
        ada.learn((PUB, f"/orders/{n}"), Said(is_allowed=True, ends_at=inf), kept)
        ada.why_not(PUB, f"/orders/not{n}")
    assert all(ada.allows(SUB, name) for name in kept)
    assert sum(ada.allows(PUB, f"/orders/{n}") for n in range(1000)) <= 100
    assert ada.allows(PUB, "/orders/999")


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('ask = ["create"]', "only about subscribe and publish"),
        ('ask = ["all"]', "only about subscribe and publish"),
        ('ask = ["publish"]\nmay = ["publish"]', "only one of may, may_not and ask"),
        ('ask = ["publish"]\nmay_not = ["publish"]', "only one of may, may_not and ask"),
        ("ask = []", "either may or may_not"),
    ],
)
def test_a_rule_that_asks_for_more_is_refused(line: str, complaint: str) -> None:
    text = f'[[rule]]\nwho = ["*"]\nchannels = ["/a"]\n{line}\n'
    with pytest.raises(Unusable, match=complaint):
        read_rights(text.encode())


def test_without_a_backend_no_rule_asks() -> None:
    with pytest.raises(Unusable, match=r"rule\.2: ask needs the setting backend"):
        read_rights(FILE, has_backend=False)
