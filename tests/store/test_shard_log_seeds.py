"""The log of a shard whatever fails, and what breaks it."""

from typing import Any
from unittest.mock import patch

import pytest
from redis import Redis

from holdfast.store.script import Script
from holdfast.store.shard_log import ShardLog
from tests.store.shard_log_world import World

pytestmark = pytest.mark.untraced

SEEDS = 20
# Each broken variant must be found by one of so many seeds.
MOST = 100


async def check(world: World) -> World:
    await world.begin()
    try:
        await world.run_for(300)
        await world.end()
        world.check()
    finally:
        await world.close()
    return world


async def test_what_is_answered_is_in_the_log_once_and_in_order_whatever_fails(
    redis: Redis,
) -> None:
    kept = refused = repeated = taken = elsewhere = openings = gone_on = 0
    for seed in range(SEEDS):
        world = await check(World(redis, seed))
        kept += sum(len(by.kept) for by in world.publishers)
        refused += sum(len(by.refused) for by in world.publishers)
        repeated += sum(len(by.repeated) for by in world.publishers)
        taken += world.confirmed
        elsewhere += world.elsewhere
        openings += world.openings
        gone_on += world.goes_on
    # What is to be survived has happened.
    assert min(kept, refused, repeated, taken) > 5 * SEEDS
    assert min(elsewhere, openings) > SEEDS / 2
    assert SEEDS / 2 > gone_on > 0


async def found_by(redis: Redis, broken: type[World] = World) -> str:
    """What a seed finds."""
    for seed in range(broken.first_seed, broken.first_seed + MOST):
        try:
            await check(broken(redis, seed))
        except AssertionError as error:
            return str(error)
    raise AssertionError("no seed finds it")


class WithoutFlush(World):
    """Passing messages are appended at the end of the turn, behind the durable ones."""

    async def begin(self) -> None:
        self.store._writer.before_turn = None
        await super().begin()


class Replaced(World):
    """A script in which one text is replaced by another."""

    old = new = ""

    def source_of(self, script: Script) -> str:
        assert self.old in script.source or "take" not in script.name
        return script.source.replace(self.old, self.new)


class LookNoted(Replaced):
    """A call with another place is noted as carried out, and so seems its repeat."""

    old = "        leave_out()\n"


class GapNoted(Replaced):
    """With it, calls before it are noted as refused, and so it seems when it is carried out."""

    first_seed = 100
    old = "if string.sub(skipped, 1, #range) == range then"
    new = "if false then"


@pytest.mark.slow
@pytest.mark.interpreted
@pytest.mark.parametrize("broken", [WithoutFlush, LookNoted, GapNoted])
async def test_broken_processes_and_scripts_are_found(redis: Redis, broken: type[World]) -> None:
    assert await found_by(redis, broken)


def make_again(self: Any, call: Any, done: Any, *, note: int = 0) -> None:
    """What the store skipped is made behind later calls."""
    self._calls.make(call, done, note=note, may_be_refused=True, is_publish=True)
    self._link.flush()


def make_early(self: Any, call: Any, done: Any, *, note: int = 0) -> None:
    """What a store has lost is made again before it knows how far logs are taken."""
    self._calls.make(call, done, note=note, may_be_refused=True, may_be_skipped=True)
    self._link.flush()


async def nothing(_: ShardLog) -> None:
    """Tell the store nothing."""


@pytest.mark.slow
@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("method", "broken"),
    [
        ("size_of", lambda *_: 0),
        ("_make", make_again),
        ("_make", make_early),
        ("begin_again", nothing),
        ("tell_taken", nothing),
    ],
)
async def test_broken_logs_are_found(redis: Redis, method: str, broken: Any) -> None:
    with patch.object(ShardLog, method, broken):
        assert await found_by(redis)
