"""Hosts whose clocks are wrong, on machines that die and freeze, over stores that come and go."""

from collections import Counter

import pytest

from tests.effort import TIMES
from tests.unit.hosts.worlds.broken import BROKEN
from tests.unit.hosts.worlds.stores import Meta, Opener, Refused
from tests.unit.hosts.worlds.world import MOVE_S, Rules, World, play

pytestmark = pytest.mark.slow

# A broken build is found within so many seeds.
_SEEDS = 60


def calm(seed: int, hosts: int = 3) -> World:
    """A world that has begun, and in which nothing went wrong yet."""
    world = World(seed, hosts=hosts)
    world.begin()
    world.run(5.0)
    world.oracle.watch()
    return world


@pytest.mark.parametrize("seed", range(12 * TIMES))
def test_no_two_speak_and_all_is_well_soon_after_the_last_fault(seed: int) -> None:
    world = play(seed)
    assert world.oracle.wrong == []
    moves = world.moves
    assert moves <= world.faults * len(world.stores.metas)
    world.run(100.0)
    assert world.moves == moves


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_found(name: str) -> None:
    broken = BROKEN[name]
    seeds = range(broken.seed, broken.seed + _SEEDS)
    with broken.in_place() as rules:
        found = any(play(seed, rules, recovers=not broken.is_unsafe).oracle.wrong for seed in seeds)
    assert found


def test_everything_that_stores_decide_happens_in_some_world() -> None:
    seen = Counter[str]()

    class Counting(Meta):
        def open(self, opener: Opener) -> str:
            rights = ("offered", "ended", "unraised")
            right = next((each for each in rights if getattr(opener, each)), "free")
            try:
                epoch = super().open(opener)
            except Refused:
                seen[f"{right} refused"] += 1
                raise
            seen[right] += 1
            return epoch

        def retract(self, epoch: str) -> bool:
            is_ours = super().retract(epoch)
            seen["taken back"] += 1
            return is_ours

    for seed in range(25):
        play(seed, Rules(meta=Counting), recovers=False)
    rights = {"offered", "ended", "unraised", "free"}
    refused = {f"{each} refused" for each in ("offered", "unraised", "free")}
    assert seen.keys() >= rights | refused | {"taken back"}


@pytest.mark.parametrize("seed", range(4))
def test_a_killed_host_is_replaced_within_four_and_a_half_seconds(seed: int) -> None:
    world = calm(seed)
    world.hosts[0].kill()
    world.run(10.0)
    assert world.oracle.wrong == []
    # The last raise of the dead host let it speak for some time.
    assert world.oracle.longest_silence_s <= 4.5
    assert all(world.oracle.silence_s(shard) == 0 for shard in range(len(world.stores.metas)))


@pytest.mark.parametrize("seed", range(4))
def test_an_update_of_all_hosts_moves_shards_and_takes_over_none(seed: int) -> None:
    world = calm(seed)
    for host in world.hosts:
        host.drain()
        for _ in range(40):
            world.run(0.5)
            if host.claimer is not None and host.claimer.claims.is_drained:
                break
        else:
            pytest.fail("a host was not drained within 20 seconds")
        host.stop()
        world.run(2.0)
        host.start()
        world.run(3.0)
    assert world.recover() == []
    assert world.oracle.longest_silence_s <= MOVE_S
    # Each opening by another host was that of an offer.
    assert sum(meta.openings for meta in world.stores.metas) == world.moves + len(
        world.stores.metas
    )


@pytest.mark.parametrize("seed", range(4))
def test_a_store_that_is_away_silences_no_other_shard(seed: int) -> None:
    world = calm(seed)
    before = [meta.epoch for meta in world.stores.metas]
    world.stores.away_until[0] = world.events.now + 6.0
    for _ in range(40):
        world.run(0.5)
        assert all(world.oracle.silence_s(shard) == 0 for shard in range(1, len(before)))
    assert [meta.epoch for meta in world.stores.metas][1:] == before[1:]
    assert world.oracle.silence_s(0) == 0


def test_hosts_with_different_capacities_do_not_move_shards_to_and_fro(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def moved() -> int:
        world = World(3, hosts=3, shards=4)
        # It wants one shard elsewhere, which that host wants here.
        world.hosts[0].capacity = 4
        world.begin()
        world.run(400.0)
        assert world.oracle.wrong == []
        return world.moves

    assert moved() == 0
    # If they took each other for hosts of one list, they would.
    monkeypatch.setattr("holdfast.hosts.claims._digest", lambda _: "same")
    assert moved() > 3


def test_a_host_that_comes_and_goes_moves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def moved() -> int:
        world = calm(7)
        for _ in range(6):
            world.hosts[0].machine.frozen_until = world.events.now + 5.0
            world.run(30.0)
        return world.moves

    assert moved() == 0
    # If a target needed not last, its shards would go home each time.
    monkeypatch.setattr("holdfast.hosts.moving._TARGET_S", 0.0)
    assert moved() > 3


def test_a_second_host_of_one_name_is_refused_and_the_first_goes_on() -> None:
    world = calm(1)
    first = world.hosts[0]
    twin = type(first)(world, first.name, world.hosts[1].machine, first.names)
    twin.start()
    world.run(20.0)
    assert twin.claimer is not None
    assert twin.claimer.claims.is_twin
    assert twin.workers == {}
    assert first.claimer is not None
    assert not first.claimer.claims.is_twin
    assert world.oracle.wrong == []
    assert world.oracle.longest_silence_s == 0
