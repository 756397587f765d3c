"""What servers of a simulated store lose, and when."""

import pytest

from tests.simulation.store.node import Node
from tests.simulation.store_site import Kind, StoreSite
from tests.simulation.world import World


def started(seed: int) -> tuple[World, StoreSite, Node]:
    world = World(seed)
    site = StoreSite(world, Kind.SINGLE, lambda: world.now)
    return world, site, site.first.primary


@pytest.mark.parametrize("seed", range(8))
def test_a_store_without_power_lacks_what_it_wrote_since_its_file_was_synchronised(
    seed: int,
) -> None:
    world, site, node = started(seed)
    with world:
        node.do(b"SET", b"old", b"1")
        world.run_for(1.5)
        for number in range(10):
            node.do(b"SET", b"new %d" % number, b"1")
            world.run_for(0.01)
        cut_at = world.now
        site.cut_power(node, world.random)
        site.start(node)
        kept = [key for key in node.keyspace.data if key != b"old"]
        assert b"old" in node.keyspace.data
        assert kept == [b"new %d" % number for number in range(len(kept))]
        if len(kept) < 10:
            [tail] = site.lost_tails()
            assert tail.begin == pytest.approx(1.5 + 0.01 * len(kept))
            assert (tail.end, tail.back_at) == (cut_at, world.now)


def test_some_stores_lose_something_with_their_power_and_others_nothing() -> None:
    lost = []
    for seed in range(20):
        world, site, node = started(seed)
        with world:
            node.do(b"SET", b"new", b"1")
            site.cut_power(node, world.random)
            lost.append(bool(site.lost_tails()))
    assert {*lost} == {True, False}


def test_a_frozen_store_without_power_lacks_what_has_come_since_then() -> None:
    world, site, node = started(1)
    with world:
        world.run_for(2.0)
        node.freeze()
        frozen_at = world.now
        world.run_for(1.0)
        site.cut_power(node, world.random)
        [tail] = site.lost_tails()
        assert (tail.begin, tail.end) == (frozen_at, world.now)


def test_a_store_that_ends_alone_loses_nothing() -> None:
    world, site, node = started(1)
    with world:
        node.do(b"SET", b"new", b"1")
        site.end(node)
        site.start(node)
        assert b"new" in node.keyspace.data
        assert not site.lost_tails()


@pytest.mark.parametrize(("which", "is_told"), [(0, True), (1, False)])
def test_the_end_of_a_primary_is_told_and_that_of_a_replica_is_not(
    *, which: int, is_told: bool
) -> None:
    world = World(1)
    site = StoreSite(world, Kind.PAIR, lambda: world.now)
    told: list[float] = []
    site.on_lost = lambda: told.append(world.now)
    with world:
        site.first.nodes[which].crash()
    assert bool(told) is is_told
