"""When a host opens a shard, as one host sees it: each row of the rule."""

from dataclasses import replace

import pytest

from holdfast.hosts.claims import Claim, Claims
from holdfast.hosts.rows import HostState
from holdfast.hosts.watching import ShardSeen
from tests.unit.hosts.desk import HOSTS, SHARDS, TARGETS, Desk, place_of, shard_of

OWN, OTHER = shard_of("a"), shard_of("b")
EMPTY = ShardSeen("", "", "", "")


def until_claimed(desk: Desk, shard: int, step_s: float = 0.1) -> float:
    """How long it takes until the shard is claimed, with looks twice a second."""
    begun, looked = desk.now, desk.now
    for _ in range(2000):
        if desk.claim_of(shard):
            return desk.now - begun
        desk.wait(step_s)
        if desk.now - looked >= 0.5 - 1e-6:
            desk.look(0.0)
            looked = desk.now
    return float("inf")


def test_nothing_is_claimed_while_all_holders_live() -> None:
    desk = Desk()
    for _ in range(200):
        desk.look()
        assert desk.claims.to_claim() == []


def test_a_host_that_has_not_looked_claims_nothing() -> None:
    assert Desk().claims.to_claim() == []


def test_a_lease_that_stood_for_three_seconds_is_claimed_with_what_it_was() -> None:
    desk = Desk({OWN: "b"})
    desk.looks(5)
    desk.raised.discard(OWN)
    assert until_claimed(desk, OWN) == pytest.approx(3.0, abs=0.11)
    seen = desk.shards[OWN]
    assert seen is not None
    assert desk.claim_of(OWN) == Claim(OWN, unraised=f"{seen.epoch} {seen.lease}")


def test_each_later_place_waits_five_seconds_more() -> None:
    waits = set()
    for shard in range(SHARDS):
        desk = Desk()
        desk.looks(5)
        # The other hosts are alive, yet do not claim.
        desk.change(shard, host="z")
        desk.raised.discard(shard)
        waits.add((place_of(shard, "a"), round(until_claimed(desk, shard, 0.02), 1)))
    assert waits == {(0, 3.0), (1, 8.0), (2, 13.0)}


def test_shards_of_a_host_that_died_are_claimed_by_their_new_targets_at_once() -> None:
    desk = Desk()
    desk.looks(5)
    desk.kill("b")
    desk.looks(3)
    aims = desk.claims.shown().targets
    assert {"b"} & {*aims.values()} == set()
    mine = {shard for shard, host in TARGETS.items() if host == "b" and aims[shard] == "a"}
    assert desk.claimed() == mine
    desk.looks(5)
    assert desk.claimed() == {shard for shard, host in TARGETS.items() if host == "b"}


def test_a_shard_without_a_lease_is_claimed_by_its_target_at_once() -> None:
    desk = Desk()
    desk.free(OWN)
    desk.change(OWN, host="b")
    desk.look()
    assert desk.claim_of(OWN) == Claim(OWN)


def test_others_leave_a_shard_without_a_lease_to_its_target_for_a_moment() -> None:
    desk = Desk()
    desk.looks(5)
    desk.free(OTHER)
    desk.look()
    assert desk.claimed() == set()
    assert until_claimed(desk, OTHER, 0.02) == pytest.approx(5.0 * place_of(OTHER, "a"), abs=0.03)


def test_hosts_that_start_leave_each_other_their_shards_for_three_seconds() -> None:
    """A host that is a second later than the first finds its shards free."""
    desk = Desk()
    desk.rows, desk.living = {}, set()
    desk.shards = {shard: ShardSeen("", "", "", "") for shard in range(SHARDS)}
    desk.look()
    own = {shard for shard in range(SHARDS) if TARGETS[shard] == "a"}
    assert desk.claimed() == own
    desk.looks(2.5)
    assert desk.claimed() == own
    desk.looks(0.5)
    assert desk.claimed() == {*range(SHARDS)}


def test_a_list_of_one_host_waits_for_nobody() -> None:
    claims = Claims("a", "n", ["a"], shards=2, capacity=None, clock=lambda: 5.0)
    claims.see({shard: ShardSeen("", "", "", "") for shard in range(2)}, {}, ())
    assert claims.to_claim() == [Claim(0), Claim(1)]


def test_a_blind_time_begins_the_wait_anew() -> None:
    desk = Desk({OWN: "b"})
    desk.looks(5)
    desk.raised.discard(OWN)
    desk.looks(2.5)
    desk.look(2.1)
    assert desk.claim_of(OWN) is None
    desk.looks(2.5)
    assert desk.claim_of(OWN) is None
    desk.look()
    assert desk.claim_of(OWN) is not None


def test_a_lease_stands_while_answers_are_late() -> None:
    desk = Desk({OWN: "b"})
    desk.looks(5)
    desk.raised.discard(OWN)
    for _ in range(2):
        desk.look(1.4)
    assert desk.claim_of(OWN) is None
    desk.look()
    assert desk.claim_of(OWN) is not None


def test_a_look_that_failed_begins_the_wait_anew_for_that_shard_alone() -> None:
    second = next(shard for shard in range(OWN + 1, SHARDS) if TARGETS[shard] == "a")
    desk = Desk({OWN: "b", second: "b"})
    desk.looks(5)
    desk.raised -= {OWN, second}
    desk.looks(2)
    seen, desk.shards[OWN] = desk.shards[OWN], None
    desk.look()
    desk.shards[OWN] = seen
    desk.looks(1)
    assert desk.claimed() == {second}
    desk.looks(2.5)
    assert desk.claimed() == {OWN, second}


def test_nothing_is_claimed_by_what_was_seen_some_time_ago() -> None:
    desk = Desk({OWN: "b"})
    desk.raised.discard(OWN)
    desk.looks(4)
    desk.wait(0.7)
    assert desk.claimed() == {OWN}
    desk.wait(0.1)
    assert desk.claimed() == set()


def test_a_shard_whose_store_cannot_be_read_is_not_claimed() -> None:
    desk = Desk()
    desk.looks(5)
    desk.shards[OWN] = None
    desk.looks(10)
    assert desk.claimed() == set()


def test_leases_are_claimed_while_the_rows_of_hosts_cannot_be_read() -> None:
    desk = Desk()
    desk.looks(5)
    desk.rows = None
    desk.kill("b")
    desk.looks(14)
    assert desk.claimed() == {shard for shard, host in TARGETS.items() if host == "b"}


def test_nobody_waits_for_the_former_host_while_rows_cannot_be_read() -> None:
    for shard in (shard for shard, host in TARGETS.items() if host == "b"):
        desk = Desk()
        desk.looks(5)
        desk.rows = None
        desk.kill("b")
        place = place_of(shard, "a") - 1
        assert until_claimed(desk, shard) == pytest.approx(3.0 + 5.0 * place, abs=0.11)


def test_an_offer_is_opened_at_once_by_the_host_it_is_for() -> None:
    desk = Desk()
    desk.looks(5)
    desk.change(OTHER, offer="a")
    desk.look()
    assert desk.claims.to_claim() == [Claim(OTHER, offered_epoch=f"e{OTHER}")]
    desk.change(OTHER, offer="c")
    desk.look()
    assert desk.claims.to_claim() == []


def test_a_shard_with_a_worker_here_is_left_to_the_supervisor() -> None:
    desk = Desk()
    desk.looks(5)
    for change in ({"lease": ""}, {"offer": "a"}, {}):
        desk.change(OWN, **change)
        desk.claims.see(desk.shards, desk.rows, {OWN})
        desk.wait(0.5)
        assert desk.claim_of(OWN) is None


def test_a_host_that_starts_again_claims_what_it_had() -> None:
    desk = Desk()
    desk.raised.discard(OWN)
    desk.looks(4)
    assert desk.claimed() == {OWN}


def test_a_shard_that_could_not_be_opened_is_left_to_others_for_a_minute() -> None:
    desk = Desk({OWN: "b"})
    desk.raised.discard(OWN)
    desk.looks(4)
    assert desk.claimed() == {OWN}
    desk.claims.failed(OWN)
    desk.change(OWN, offer="a")
    desk.looks(59.5)
    assert desk.claimed() == set()
    desk.looks(0.5)
    assert desk.claimed() == {OWN}


def test_a_host_says_for_a_minute_which_shards_it_could_not_open() -> None:
    desk = Desk()
    desk.look()
    desk.claims.failed(OTHER)
    desk.claims.failed(OWN)
    desk.look()
    assert desk.rows
    assert desk.rows["a"].refuses == tuple(sorted((OTHER, OWN)))
    desk.looks(60)
    assert desk.rows["a"].refuses == ()


def test_a_host_that_could_not_open_a_shard_is_asked_last() -> None:
    desk = Desk()
    assert desk.rows
    desk.rows["b"] = replace(desk.rows["b"], refuses=(OTHER,))
    desk.looks(5)
    desk.raised.discard(OTHER)
    place = place_of(OTHER, "a")
    assert until_claimed(desk, OTHER, 0.02) == pytest.approx(3.0 + 0.3 * (place - 1), abs=0.05)


def test_a_draining_host_comes_behind_all_others() -> None:
    desk = Desk()
    desk.looks(5)
    desk.claims.drain()
    desk.looks(1)
    desk.change(OWN, host="b")
    desk.raised.discard(OWN)
    assert until_claimed(desk, OWN, 0.02) == pytest.approx(13.0, abs=0.05)


def test_a_host_that_drains_elsewhere_is_asked_last() -> None:
    desk = Desk()
    desk.looks(5)
    desk.set_state("b", HostState.DRAINING)
    desk.looks(1)
    assert "b" not in desk.claims.shown().targets.values()
    assert desk.claims.shown().draining == ["b"]


def test_the_last_host_claims_though_it_drains() -> None:
    desk = Desk()
    desk.looks(5)
    desk.claims.drain()
    desk.kill("b")
    desk.kill("c")
    desk.looks(4)
    assert desk.claimed() == {shard for shard, host in TARGETS.items() if host != "a"}


def test_a_drain_ends_by_itself_after_ten_minutes() -> None:
    desk = Desk()
    desk.claims.drain()
    desk.looks(599.5)
    assert desk.claims.is_draining
    desk.looks(0.5)
    assert not desk.claims.is_draining


def test_a_host_is_drained_when_no_store_says_that_it_has_a_shard() -> None:
    desk = Desk()
    assert not desk.claims.is_drained
    for shard, target in TARGETS.items():
        if target == "a":
            desk.open(shard, "b")
    desk.look()
    assert desk.claims.is_drained
    desk.shards[OTHER] = None
    desk.look()
    assert not desk.claims.is_drained


def test_a_second_host_of_one_name_claims_nothing_and_writes_no_row() -> None:
    desk = Desk()
    twin = Claims("a", "other", HOSTS, shards=SHARDS, capacity=None, clock=lambda: desk.now)
    desk.look()
    desk.free(OWN)
    for _ in range(8):
        desk.look()
        twin.see(desk.shards, desk.rows, ())
        assert twin.to_claim() == []
        assert twin.row() is None
    assert twin.is_twin
    assert not desk.claims.is_twin


def test_the_row_rises_and_says_whether_the_host_drains() -> None:
    desk = Desk()
    assert desk.claims.row() is None
    desk.look()
    first = desk.claims.row()
    desk.claims.drain()
    second = desk.claims.row()
    desk.claims.uncordon()
    third = desk.claims.row()
    assert first
    assert second
    assert third
    assert [second.n - first.n, third.n - second.n] == [1, 1]
    assert [first.state, second.state, third.state] == ["serving", "draining", "serving"]


def test_operators_see_who_has_what() -> None:
    desk = Desk({OWN: "b"})
    desk.looks(5)
    desk.kill("c")
    desk.looks(4)
    shown = desk.claims.shown()
    orphans = [shard for shard, host in TARGETS.items() if host == "c"]
    assert shown.unowned == sorted(orphans)
    assert shown.owners == {
        shard: "b" if shard == OWN else host for shard, host in TARGETS.items() if host != "c"
    }
    assert shown.living == ["a", "b"]


def without_hosts(desk: Desk) -> None:
    """Let a server without a list of hosts have all shards, called n."""
    for shard in range(SHARDS):
        # What hosts left in other shards does not count.
        desk.change(shard, host="" if shard == 0 else "b", node="n")


def test_a_server_without_hosts_that_lives_is_named_and_nothing_of_it_is_claimed() -> None:
    desk = Desk()
    without_hosts(desk)
    desk.raised = {3}
    desk.looks(1)
    assert desk.claims.other_server == "n"
    desk.looks(20)
    # One of its processes is gone for long, and yet it has all shards.
    assert desk.claimed() == set()


def test_a_host_opens_the_first_shard_of_a_server_that_ended_and_then_all_do() -> None:
    desk = Desk(own=TARGETS[0])
    without_hosts(desk)
    desk.raised = {3}
    desk.looks(5)
    desk.raised = set()
    desk.looks(2)
    assert desk.claimed() == set()
    desk.looks(2)
    assert desk.claims.other_server == ""
    assert desk.claimed() == {0}
    desk.open(0, desk.own)
    desk.look()
    assert desk.claimed() >= {shard for shard, host in TARGETS.items() if host == desk.own} - {0}


def test_a_server_without_hosts_that_stopped_in_order_need_not_be_waited_for() -> None:
    desk = Desk(own=TARGETS[0])
    without_hosts(desk)
    desk.raised = set()
    for shard in range(SHARDS):
        desk.free(shard)
    desk.look()
    assert desk.claimed() == {0}


def test_nothing_is_claimed_before_the_first_shard_says_whether_it_is_of_hosts() -> None:
    desk = Desk()
    first, desk.shards[0] = desk.shards[0], None
    desk.raised.discard(OWN)
    desk.looks(10)
    assert desk.claimed() == set()
    desk.shards[0] = first
    desk.look()
    assert desk.claimed() == {OWN}
    # What it said once, it says while it is away.
    desk.shards[0] = None
    desk.look()
    assert desk.claimed() == {OWN}


def test_a_shard_whose_store_came_back_empty_is_not_opened_as_a_new_one() -> None:
    desk = Desk()
    desk.looks(1)
    # What this process has seen, it knows as long as it lives.
    desk.shards[OWN] = EMPTY
    desk.looks(2)
    # Its holder may live, and open it again.
    assert desk.claims.emptied == []
    desk.looks(20)
    assert desk.claimed() == set()
    assert desk.claims.emptied == [OWN]
    # An operator gives up what it had.
    desk.shards[OWN] = replace(EMPTY, deployment="d")
    desk.looks(20)
    assert desk.claimed() == {OWN}
    assert desk.claims.emptied == []


def test_a_host_that_starts_knows_by_the_rows_which_shards_were_opened_once() -> None:
    desk = Desk()
    desk.shards[OWN] = EMPTY
    desk.recorded = {OWN}
    desk.looks(20)
    assert desk.claimed() == set()
    desk = Desk()
    desk.shards[OWN] = EMPTY
    desk.looks(20)
    assert desk.claimed() == {OWN}


def test_a_new_shard_is_not_opened_before_the_rows_were_read() -> None:
    desk = Desk()
    desk.shards[OWN], desk.rows = EMPTY, None
    desk.looks(20)
    assert desk.claimed() == set()


def test_what_was_opened_once_is_recorded_again_where_the_record_is_gone() -> None:
    desk = Desk()
    desk.recorded = {*range(SHARDS)} - {OWN}
    desk.looks(1)
    assert desk.claims.unrecorded == [OWN]
    desk.recorded = {*range(SHARDS)}
    desk.look()
    assert desk.claims.unrecorded == []
    desk.recorded = set()
    desk.look()
    assert desk.claims.unrecorded == [*range(SHARDS)]


def test_the_first_shard_is_new_only_if_all_are() -> None:
    desk = Desk(own=TARGETS[0])
    last = desk.shards[SHARDS - 1]
    desk.shards = dict.fromkeys(range(SHARDS), EMPTY)
    desk.shards[SHARDS - 1] = None
    desk.raised = set()
    desk.looks(20)
    assert 0 not in desk.claimed()
    desk.shards[SHARDS - 1] = last
    desk.looks(20)
    # With it, the records of the others are gone.
    assert desk.claims.emptied == [*range(SHARDS - 1)]
    assert desk.claims.unrecorded == []
    assert desk.claimed() <= {SHARDS - 1}
    desk = Desk(own=TARGETS[0])
    desk.shards = dict.fromkeys(range(SHARDS), EMPTY)
    desk.looks(20)
    assert 0 in desk.claimed()


def test_hosts_whose_leases_moved_lately_may_have_shards() -> None:
    desk = Desk()
    desk.looks(1)
    assert desk.claims.other_holders == {"b", "c"}
    desk.kill("b")
    desk.looks(2.5)
    assert desk.claims.other_holders == {"b", "c"}
    desk.looks(1)
    assert desk.claims.other_holders == {"c"}
    for shard, host in TARGETS.items():
        if host == "c":
            desk.free(shard)
    desk.look()
    assert desk.claims.other_holders == set()


def test_a_look_while_the_first_shard_is_opened_loses_no_shard() -> None:
    """It may have been read before that, and another one after it was opened, too."""
    desk = Desk(own=TARGETS[SHARDS - 1])
    opened = {shard: desk.shards[shard] for shard in (0, 1)}
    desk.shards = dict.fromkeys(range(SHARDS), EMPTY)
    desk.shards[1] = opened[1]
    desk.raised = set()
    desk.look()
    desk.shards[0] = opened[0]
    desk.looks(20)
    assert desk.claimed() >= {*range(2, SHARDS)}
    assert desk.claims.emptied == []
