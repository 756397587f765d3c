"""Which host is to have which shard: balanced, the same for all, and seldom another one."""

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.hosts.preference import order_of, targets

NAMES = [f"host-{number}.example" for number in range(8)]


@st.composite
def lists(draw: st.DrawFn) -> tuple[int, Sequence[str], Sequence[str]]:
    """A number of shards, some hosts, and those of them that live."""
    hosts = draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
    living = draw(st.lists(st.sampled_from(hosts), min_size=1, unique=True))
    return draw(st.integers(1, 24)), hosts, living


def test_the_preference_stays_the_same_in_every_release() -> None:
    """Hosts of two releases that disagree would move shards to and fro."""
    assert order_of(0, ["a", "b", "c"]) == ["b", "a", "c"]
    found = targets(6, ["a", "b", "c"], ["a", "b", "c"], None)
    assert "".join(found[shard] for shard in range(6)) == "bccaba"


@pytest.mark.slow
@given(lists())
def test_no_living_host_has_two_more_than_another(given_: tuple[int, list[str], list[str]]) -> None:
    shards, hosts, living = given_
    found = targets(shards, hosts, living, None)
    assert found.keys() == {*range(shards)}
    counts = Counter(found.values())
    each = [counts[host] for host in living]
    assert sum(each) == shards
    assert max(each) - min(each) <= 1


@pytest.mark.slow
@given(lists())
def test_the_order_of_the_list_changes_nothing(
    given_: tuple[int, list[str], list[str]],
) -> None:
    shards, hosts, living = given_
    shuffled = sorted(hosts, reverse=True)
    assert targets(shards, hosts, living, None) == targets(shards, shuffled, living[::-1], None)
    assert order_of(3, hosts) == order_of(3, shuffled)


@pytest.mark.slow
@given(lists())
def test_only_its_own_shards_move_when_a_host_of_a_whole_list_leaves(
    given_: tuple[int, list[str], list[str]],
) -> None:
    shards, hosts, _ = given_
    home = targets(shards, hosts, hosts, None)
    for gone in hosts[1:]:
        away = targets(shards, hosts, [host for host in hosts if host != gone], None)
        assert {shard for shard in home if home[shard] != away[shard]} == {
            shard for shard, host in home.items() if host == gone
        }


@pytest.mark.slow
@given(lists())
def test_a_shard_whose_home_lives_is_at_home_whoever_else_is_away(
    given_: tuple[int, list[str], list[str]],
) -> None:
    shards, hosts, living = given_
    home = targets(shards, hosts, hosts, None)
    found = targets(shards, hosts, living, None)
    assert all(found[shard] == host for shard, host in home.items() if host in living)


@pytest.mark.slow
@given(lists(), st.integers(1, 12))
def test_a_host_has_no_more_than_its_capacity_or_its_share(
    given_: tuple[int, list[str], list[str]], capacity: int
) -> None:
    shards, hosts, living = given_
    found = targets(shards, hosts, living, capacity)
    assert found.keys() == {*range(shards)}
    share = -(-shards // len(living))
    assert max(Counter(found.values()).values()) <= max(share, capacity)


def test_shards_prefer_all_hosts_equally_often() -> None:
    first = Counter(order_of(shard, NAMES[:4])[0] for shard in range(400))
    assert all(70 <= first[host] <= 130 for host in NAMES[:4])


@pytest.mark.parametrize("living", [[], ["elsewhere.example"]])
def test_no_shard_has_a_target_while_no_host_of_the_list_lives(living: list[str]) -> None:
    assert targets(6, NAMES, living, None) == {}
