"""Which channels have a home, by the rules, and rules that need other homes than the store has."""

from typing import Any

import pytest

from holdfast.cluster.shards import Homes
from holdfast.compose.cannot_start import CannotStart
from holdfast.compose.homes import check_homes, homes_for
from holdfast.settings import ChannelSettings

HISTORY: dict[str, Any] = {"history": 10}


def rules(**given: dict[str, Any]) -> dict[str, ChannelSettings]:
    """Rules by pattern."""
    return {pattern: ChannelSettings(**rule) for pattern, rule in given.items()}


@pytest.mark.parametrize("rule", [{"history": 1}, {"work_queue": True}, {"topic": True}])
def test_channels_have_a_home_if_their_rule_needs_one_that_decides(rule: dict[str, Any]) -> None:
    found = homes_for(rules(**{"/a/b": rule, "/c": {"lazy_timeout": 1}, "/d": {}}))
    assert found.segments == {"/a/b": 2}


@pytest.mark.parametrize(
    ("pattern", "segments"), [("/a/b/c", 3), ("/a/b/*", 2), ("/a/**", 1), ("/*", 1), ("/**", 1)]
)
def test_channels_of_a_pattern_that_agree_in_its_fixed_part_have_the_same_home(
    pattern: str, segments: int
) -> None:
    assert homes_for(rules(**{pattern: HISTORY})).segments == {pattern: segments}


def test_channels_with_rules_of_their_own_have_the_home_of_the_pattern_around_them() -> None:
    found = homes_for(rules(**{"/a/**": HISTORY, "/a/b/**": HISTORY, "/a/b/c": {"topic": True}}))
    assert found.segments == {"/a/**": 1, "/a/b/**": 1, "/a/b/c": 1}
    assert found.key_of_pattern("/a/**") == found.key_of("/a/b/c") == "/a"


def test_rules_that_need_the_homes_in_the_store_are_accepted() -> None:
    created = homes_for(rules(**{"/a/**": HISTORY}))
    check_homes(created.to_json(), rules(**{"/a/**": {"topic": True}, "/b": {}}))
    check_homes(Homes({}).to_json(), {})


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({}, '"/a/\\*\\*"'),
        ({"/a/**": HISTORY, "/b/*": HISTORY, "/c": HISTORY}, '"/b/\\*", "/c"'),
        ({"/a/*": HISTORY}, '"/a/\\*", "/a/\\*\\*"'),
    ],
)
def test_rules_that_need_other_homes_are_refused_by_their_patterns(
    changed: dict[str, dict[str, Any]], named: str
) -> None:
    created = homes_for(rules(**{"/a/**": HISTORY}))
    with pytest.raises(CannotStart, match=f"with other rules for {named}, .*reshard --rules"):
        check_homes(created.to_json(), rules(**changed))


def test_an_unreadable_table_is_refused() -> None:
    with pytest.raises(CannotStart, match="the store of shard 0 cannot be used"):
        check_homes(b"{}", {})
