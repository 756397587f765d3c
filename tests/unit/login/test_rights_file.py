"""The file of rights, and what its rules decide."""

from dataclasses import replace
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bayeux.wire.login import Login, LoginMethod, Right
from holdfast.bayeux.wire.operation import Operation
from holdfast.delivery.basics.channels import covers
from holdfast.login.failures import Unusable
from holdfast.login.rights_file import (
    EVERYTHING,
    Revoked,
    RightsFile,
    read_claim,
    read_rights,
    without_file,
)
from holdfast.login.rules import LoginRules, Rule, RuleGrants, Rules, RuleSource

FILE = b"""
[[rule]]
who = ["*"]
may = ["subscribe", "publish", "create"]
channels = ["/rooms/**", "/users/{subject}/**"]

[[rule]]
who = ["@staff"]
may = ["all"]
channels = ["/**"]

[[rule]]
who = ["*"]
may_not = ["publish"]
channels = ["/rooms/news"]

[[rule]]
who = ["anonymous"]
may = ["subscribe"]
channels = ["/rooms/news"]
"""
RIGHTS = read_rights(FILE)
ADA = Login("ada", LoginMethod.TOKEN)
BOSS = Login("bo", LoginMethod.TOKEN, frozenset({"staff"}))
GUEST = Login("anonymous", LoginMethod.ANONYMOUS)


def may(login: Login, operation: str, channel: str) -> bool:
    decision = LoginRules(RIGHTS.rules, login).decide(Operation(operation), channel)
    return decision.is_allowed


@pytest.mark.parametrize(
    ("login", "operation", "channel", "expected"),
    [
        (ADA, "subscribe", "/rooms/1", True),
        (ADA, "subscribe", "/rooms/**", True),
        (ADA, "subscribe", "/**", False),
        (ADA, "subscribe", "/users/ada/inbox", True),
        (ADA, "subscribe", "/users/bo/inbox", False),
        (ADA, "subscribe", "/users/**", False),
        (ADA, "subscribe", "/users/*", False),
        (ADA, "publish", "/rooms/news", False),
        (ADA, "publish", "/rooms/other", True),
        (ADA, "subscribe", "/sys/alert", False),
        (BOSS, "subscribe", "/**", True),
        (BOSS, "publish", "/rooms/news", False),
        (BOSS, "publish", "/anything", True),
        (BOSS, "subscribe", "/sys/alert", False),
        (GUEST, "subscribe", "/rooms/news", True),
        (GUEST, "subscribe", "/rooms/*", False),
        (GUEST, "publish", "/rooms/1", False),
    ],
)
def test_a_login_may_do_what_a_rule_allows_and_none_denies(
    login: Login, operation: str, channel: str, expected: bool
) -> None:
    assert may(login, operation, channel) is expected


def test_a_decision_names_its_rule() -> None:
    decided = LoginRules(RIGHTS.rules, BOSS).decide(Operation.PUBLISH, "/rooms/news")

    assert decided.rule is not None
    assert decided.rule.number == 3
    assert LoginRules(RIGHTS.rules, ADA).decide(Operation.CREATE, "/x").rule is None


def test_every_login_may_do_everything_without_a_file() -> None:
    for login in (ADA, GUEST):
        mine = LoginRules(EVERYTHING.rules, login)
        assert all(mine.decide(each, "/**").is_allowed for each in Operation)


def test_changed_rules_count_at_once() -> None:
    rules = Rules(RIGHTS.rules)
    grants = RuleGrants(rules, ADA)
    assert grants.allows(Operation.PUBLISH, "/rooms/1")

    rules.in_force = ()

    assert not grants.allows(Operation.PUBLISH, "/rooms/1")


def test_decisions_are_cached_for_a_limited_number_of_channels() -> None:
    grants = RuleGrants(Rules(RIGHTS.rules), ADA)

    for number in range(1000):
        assert grants.allows(Operation.PUBLISH, f"/rooms/{number}")
        assert not grants.allows(Operation.PUBLISH, f"/other/{number}")

    assert all(len(answers) <= 100 for answers in grants._answers.values())


NAMES = st.sampled_from(["a", "b", "ada"])
CHANNELS = st.lists(NAMES, min_size=1, max_size=3).map(lambda names: "/" + "/".join(names))
PATTERNS = st.builds(
    lambda channel, last: channel + last, CHANNELS, st.sampled_from(["", "/*", "/**"])
)
CLAIMED = st.builds(
    Right,
    operations=st.just(frozenset(Operation)),
    channels=st.lists(PATTERNS, min_size=1, max_size=2).map(tuple),
    denies=st.booleans(),
)
RULES = st.lists(
    st.builds(
        Rule,
        who=st.frozensets(st.sampled_from(["*", "ada", "bo"]), min_size=1),
        right=CLAIMED,
    ),
    max_size=5,
)


@pytest.mark.slow
@given(RULES, st.lists(CLAIMED, max_size=3), PATTERNS, CHANNELS)
def test_a_pattern_is_allowed_only_if_each_of_its_channels_is(
    rules: list[Rule], claimed: list[Right], pattern: str, channel: str
) -> None:
    mine = LoginRules(rules, replace(ADA, rights=tuple(claimed)))

    if mine.decide(Operation.SUBSCRIBE, pattern).is_allowed and covers(pattern, channel):
        assert mine.decide(Operation.SUBSCRIBE, channel).is_allowed


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (b"rule = 5", "rule"),
        (b"[[rule]]\nwho=['*']\nchannels=['/a']", "rule.1"),
        (b"[[rule]]\nwho=['*']\nmay=['all']\nmay_not=['all']\nchannels=['/a']", "rule.1"),
        (b"[[rule]]\nwho=['*']\nmay=['fly']\nchannels=['/a']", "rule.1: 'fly' is not a right"),
        (b"[[rule]]\nwho=['a b']\nmay=['all']\nchannels=['/a']", "rule.1.who"),
        (b"[[rule]]\nwho=['@']\nmay=['all']\nchannels=['/a']", "rule.1.who: '@' is not"),
        (b"[administration]\noperators=['@']", "administration.operators: '@' is neither"),
        (b"[administration]\nreaders=['a b']", "administration.readers: 'a b' is neither"),
        (b"[[rule]]\nwho=['*']\nmay=['all']\nchannels=['a']", "rule.1.channels"),
        (b"[[rule]]\nwho=[]\nmay=['all']\nchannels=['/a']", "rule.1.who"),
        (b"[[rule]]\nwho=['*']\nmay=['all']\nchanels=['/a']", "rule.1"),
        (b"[[rules]]", "rules"),
        (b"[revoked]\nissued_before='soon'", "revoked"),
        (b"[[", "TOML"),
        (b"\xff", "UTF-8"),
    ],
)
def test_an_error_names_its_place_in_the_file(text: bytes, place: str) -> None:
    with pytest.raises(Unusable, match=place):
        read_rights(text)


def test_a_login_is_revoked_by_its_subject_its_token_id_or_its_time_of_issue() -> None:
    rights: RightsFile = read_rights(
        b"[revoked]\nsubjects=['bo']\ntokens=['7']\nissued_before=2026-01-01T00:00:00Z"
    )
    start = 1767225600.0

    assert rights.revoked.includes(BOSS)
    assert rights.revoked.includes(Login("ada", LoginMethod.TOKEN, token_id="7"))
    assert rights.revoked.includes(Login("ada", LoginMethod.TOKEN, issued_s=start - 1))
    assert not rights.revoked.includes(Login("ada", LoginMethod.TOKEN, issued_s=start))
    assert not rights.revoked.includes(ADA)
    assert not Revoked(tokens=frozenset()).includes(ADA)


def test_a_login_survives_its_stored_form() -> None:
    brings = replace(ADA, rights=read_claim([{"may_not": ["all"], "channels": ["/a", "/b/*"]}]))
    for login in (
        ADA,
        BOSS,
        brings,
        Login("x1", LoginMethod.PASSWORD, frozenset("ab"), 7.5, 3.0, "id"),
    ):
        assert Login.of_json(login.to_json()) == login
    assert ADA.expires_s == inf
    assert Login.of_json({n: v for n, v in ADA.to_json().items() if n != "rights"}) == ADA


def claims(*rights: dict[str, Any], login: Login = ADA) -> Login:
    return replace(login, rights=read_claim(list(rights)))


READS = {"may": ["subscribe"], "channels": ["/own/{subject}/**"]}
SHUTS = {"may_not": ["publish"], "channels": ["/rooms/1"]}


def test_a_token_adds_to_what_the_file_allows() -> None:
    ada = claims(READS)

    assert may(ada, "subscribe", "/own/ada/**")
    assert not may(ada, "subscribe", "/own/bo/x")
    assert not may(ada, "publish", "/own/ada/x")
    assert may(ada, "publish", "/rooms/1")
    assert not may(ADA, "subscribe", "/own/ada/x")


def test_a_denial_wins_whether_in_the_file_or_the_token() -> None:
    assert not may(claims(SHUTS), "publish", "/rooms/1")
    assert may(claims(SHUTS), "publish", "/rooms/2")
    everything = {"may": ["all"], "channels": ["/**"]}
    assert not may(claims(everything), "publish", "/rooms/news")
    assert may(claims(everything), "publish", "/elsewhere")


def test_a_decision_says_whether_the_file_or_the_token_made_it() -> None:
    mine = LoginRules(RIGHTS.rules, claims(READS, SHUTS))

    def decided(operation: Operation, channel: str) -> tuple[RuleSource, int] | None:
        rule = mine.decide(operation, channel).rule
        return None if rule is None else (rule.source, rule.number)

    assert decided(Operation.SUBSCRIBE, "/own/ada/x") == (RuleSource.CLAIM, 1)
    assert decided(Operation.PUBLISH, "/rooms/1") == (RuleSource.CLAIM, 2)
    assert decided(Operation.PUBLISH, "/rooms/2") == (RuleSource.FILE, 1)
    assert decided(Operation.PUBLISH, "/service/login") == (RuleSource.BUILT_IN, 1)
    assert decided(Operation.PUBLISH, "/nowhere") is None


def test_a_login_without_a_file_has_only_the_rights_of_its_token() -> None:
    rules = without_file(has_claims=True).rules

    assert not LoginRules(rules, ADA).decide(Operation.SUBSCRIBE, "/a").is_allowed
    brings = claims({"may": ["subscribe"], "channels": ["/a"]})
    assert LoginRules(rules, brings).decide(Operation.SUBSCRIBE, "/a").is_allowed
    assert LoginRules(rules, ADA).decide(Operation.PUBLISH, "/service/login").is_allowed


@pytest.mark.parametrize(
    ("claim", "place"),
    [
        ("all", "list"),
        ({"may": ["all"]}, "list"),
        (["subscribe"], "1"),
        ([{"may": ["all"]}], "1.channels"),
        ([READS, {"may": ["fly"], "channels": ["/a"]}], "2: 'fly' is not a right"),
        ([{**READS, "may_not": ["publish"]}], "1: it needs either"),
        ([{**READS, "who": ["*"]}], "1.who"),
        ([{"may": ["all"], "channels": ["rooms"]}], "1.channels"),
        ([READS] * 101, "100"),
    ],
)
def test_an_error_in_a_claim_names_its_place(claim: object, place: str) -> None:
    with pytest.raises(Unusable, match=place):
        read_claim(claim)


@pytest.mark.parametrize("name", ["reply", "fly"])
def test_an_unknown_right_is_refused(name: str) -> None:
    with pytest.raises(
        Unusable, match=f"rule.1: '{name}' is not a right; rights are create, subscribe"
    ):
        read_rights(f"[[rule]]\nwho=['*']\nmay=['{name}']\nchannels=['/a']".encode())
