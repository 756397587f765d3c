"""When a host gives a shard to another one, as one host sees it: each row of the rule."""

from dataclasses import replace

import pytest

from holdfast.hosts.moving import Give
from holdfast.hosts.rows import HostState
from tests.unit.hosts.desk import SHARDS, TARGETS, Desk, shard_of

OF_B, OF_C = shard_of("b"), shard_of("c")
FIRST, SECOND = sorted((OF_B, OF_C))


def settled(holders: dict[int, str], seconds: float = 62) -> Desk:
    """A desk where these hosts have had these shards for some time."""
    desk = Desk(holders)
    desk.looks(seconds)
    return desk


def test_a_shard_moves_when_its_target_was_another_for_a_minute() -> None:
    desk = settled({OF_B: "a"}, 59.5)
    assert desk.claims.to_give() is None
    desk.looks(1.5)
    assert desk.claims.to_give() == Give(OF_B, "b")
    assert desk.claims.shown().moves == [OF_B]


def test_nothing_moves_where_each_shard_is_on_its_target() -> None:
    desk = settled({}, 200)
    assert desk.claims.to_give() is None
    assert desk.claims.shown().moves == []


def test_only_the_holder_gives_a_shard() -> None:
    desk = settled({OF_B: "c"})
    assert desk.claims.shown().moves == [OF_B]
    assert desk.claims.to_give() is None


def test_the_lowest_misplaced_shard_of_all_moves_first() -> None:
    desk = settled({FIRST: "a", SECOND: "a"})
    assert desk.claims.to_give() == Give(FIRST, TARGETS[FIRST])
    other = next(host for host in "bc" if host != TARGETS[FIRST])
    desk = settled({FIRST: other, SECOND: "a"})
    assert desk.claims.to_give() is None
    desk.open(FIRST, TARGETS[FIRST])
    desk.looks(3)
    assert desk.claims.to_give() == Give(SECOND, TARGETS[SECOND])


def test_the_minute_begins_anew_when_another_host_leaves_or_returns() -> None:
    desk = settled({OF_B: "a"}, 50)
    desk.living.discard("b")
    desk.looks(4)
    desk.living.add("b")
    desk.looks(58)
    assert desk.claims.to_give() is None
    desk.looks(4)
    assert desk.claims.to_give() == Give(OF_B, "b")


@pytest.mark.parametrize("trouble", ["offer", "no lease", "unraised", "unread", "no rows"])
def test_nothing_moves_while_anything_is_the_matter(trouble: str) -> None:
    desk = settled({OF_B: "a"})
    assert desk.claims.to_give()
    match trouble:
        case "offer":
            desk.change(OF_C, offer="b")
        case "no lease":
            desk.free(OF_C)
        case "unraised":
            desk.raised.discard(OF_C)
        case "unread":
            desk.shards[OF_C] = None
        case _:
            desk.rows = None
    desk.looks(2)
    assert desk.claims.to_give() is None


def test_what_is_to_move_is_the_same_until_the_store_shows_the_offer() -> None:
    desk = settled({OF_B: "a"})
    for _ in range(10):
        assert desk.claims.to_give() == Give(OF_B, "b")
        desk.look()
    desk.change(OF_B, offer="b")
    desk.look()
    assert desk.claims.to_give() is None


def test_a_shard_without_a_worker_here_is_not_given() -> None:
    desk = settled({OF_B: "a"})
    desk.claims.see(desk.shards, desk.rows, ())
    assert desk.claims.to_give() is None


def test_nothing_is_given_by_what_was_seen_some_time_ago() -> None:
    desk = settled({OF_B: "a"})
    desk.wait(0.8)
    assert desk.claims.to_give() is None


def test_a_draining_host_gives_its_shards_one_after_the_other() -> None:
    desk = settled({}, 5)
    desk.claims.drain()
    given = []
    for _ in range(40):
        desk.look()
        give = desk.claims.to_give()
        if give is not None:
            given.append(give)
            desk.open(give.shard, give.host)
    aims = desk.claims.shown().targets
    own = [shard for shard in range(SHARDS) if TARGETS[shard] == "a"]
    assert given == [Give(shard, aims[shard]) for shard in own]
    assert desk.claims.is_drained


def test_a_host_that_drains_goes_before_balance() -> None:
    desk = settled({FIRST: "a"})
    last = max(shard for shard in range(SHARDS) if TARGETS[shard] == "b")
    desk.set_state("b", HostState.DRAINING)
    desk.looks(2)
    assert desk.claims.to_give() is None
    assert {TARGETS[shard] for shard in desk.claims.shown().moves} == {"b"}
    assert last in desk.claims.shown().moves


def test_nothing_is_balanced_during_an_update() -> None:
    desk = settled({OF_C: "a"}, 5)
    desk.set_state("b", HostState.DRAINING)
    of_b = [shard for shard in range(SHARDS) if TARGETS[shard] == "b"]
    for shard in of_b:
        desk.open(shard, "c")
    desk.looks(120)
    assert desk.claims.to_give() is None
    desk.set_state("b", HostState.SERVING)
    for shard in of_b:
        desk.open(shard, "b")
    desk.looks(2)
    assert desk.claims.to_give() == Give(OF_C, "c")


def test_a_drain_without_another_host_moves_nothing() -> None:
    desk = settled(dict.fromkeys(range(SHARDS), "a"), 5)
    desk.kill("b")
    desk.kill("c")
    desk.claims.drain()
    desk.looks(70)
    assert desk.claims.to_give() is None


def test_a_host_that_opened_no_offer_gets_no_other_for_a_minute_then_two() -> None:
    desk = settled({OF_B: "a"})
    waits = []
    for _ in range(3):
        assert desk.claims.to_give() == Give(OF_B, "b")
        desk.change(OF_B, offer="b")
        desk.looks(5)
        desk.change(OF_B, offer="")
        begun = desk.now
        while desk.claims.to_give() is None:
            desk.look()
        waits.append(desk.now - begun)
    assert waits == pytest.approx([60.5, 120.5, 240.5], abs=1)


def test_a_draining_host_offers_to_the_next_when_the_first_does_not_open() -> None:
    desk = settled({}, 5)
    desk.claims.drain()
    desk.looks(2)
    give = desk.claims.to_give()
    assert give
    desk.claims.not_given(give.shard, give.host)
    again = desk.claims.to_give()
    assert again
    assert again.shard == give.shard
    assert {give.host, again.host} == {"b", "c"}


def test_a_host_that_could_not_open_a_shard_is_not_offered_it() -> None:
    desk = Desk({OF_B: "a"})
    assert desk.rows
    desk.rows["b"] = replace(desk.rows["b"], refuses=(OF_B,))
    desk.looks(70)
    assert desk.claims.to_give() is None
    desk.rows["b"] = replace(desk.rows["b"], refuses=())
    desk.look()
    assert desk.claims.to_give() == Give(OF_B, "b")


def test_an_offer_that_was_opened_is_no_refusal() -> None:
    desk = settled({OF_B: "a"})
    desk.change(OF_B, offer="b")
    desk.look()
    desk.open(OF_B, "b")
    desk.look()
    desk.open(OF_B, "a")
    desk.looks(61.5)
    assert desk.claims.to_give() == Give(OF_B, "b")


def test_a_shard_that_its_holder_does_not_give_holds_the_others_up_for_seconds() -> None:
    other = next(host for host in "bc" if host != TARGETS[FIRST])
    desk = settled({FIRST: other, SECOND: "a"})
    assert desk.claims.to_give() is None
    desk.looks(16)
    assert desk.claims.to_give() == Give(SECOND, TARGETS[SECOND])


def test_hosts_with_different_lists_balance_nothing_between_them() -> None:
    desk = settled({OF_B: "a"})
    assert desk.claims.to_give()
    assert desk.rows
    desk.view = "another"
    desk.look()
    desk.view = "another"
    for _ in range(300):
        desk.rows["b"] = replace(desk.rows["b"], view="another")
        desk.look()
        assert desk.claims.to_give() is None or desk.rows["b"].view != "another"


def test_shards_of_a_host_whose_row_stands_wait_for_nobody_to_give_them() -> None:
    desk = settled({FIRST: "c" if TARGETS[FIRST] == "b" else "b", SECOND: "a"}, 5)
    desk.living.discard("c" if TARGETS[FIRST] == "b" else "b")
    desk.looks(63)
    assert FIRST not in desk.claims.shown().moves
