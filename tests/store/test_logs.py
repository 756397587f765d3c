"""Logs of shards, written and taken by the real scripts, whatever fails; and what breaks them."""

from collections.abc import Sequence
from unittest.mock import patch

import pytest
from redis import Redis

from holdfast.cluster.frames import Entry
from holdfast.cluster.letters import Done
from holdfast.cluster.reading import LogReader
from holdfast.cluster.trimming import Trim
from holdfast.store import log_scripts, scripts
from holdfast.store.keys import RedisKeys
from holdfast.store.log_scripts import Step
from holdfast.store.script import Script
from holdfast.store.scripts import ScriptCall
from tests.store.log_world import World, message_of

SEEDS = 10
# Each broken variant must be found by one of so many seeds.
MOST = 200


def check(world: World) -> None:
    world.run_for(400)
    world.drain()
    world.check()


@pytest.mark.slow
async def test_what_shards_write_for_each_other_is_taken_once_and_in_order_whatever_fails(
    redis: Redis,
) -> None:
    went_back = refused = 0
    for seed in range(SEEDS):
        world = World(redis, seed, shards=2 + seed % 2)
        check(world)
        went_back += len(world.went_back)
        refused += world.refused
    # What is to be survived has happened.
    assert went_back > SEEDS / 4
    assert refused > SEEDS / 4


class Replaced(World):
    """Scripts in which one text is replaced by another."""

    # A script that must have the text.
    script = "append"
    old = new = ""

    def source(self, script: Script) -> str:
        assert self.old in script.source or self.script not in script.name
        return script.source.replace(self.old, self.new)


class NumbersOfTheStore(Replaced):
    """The store numbers frames, so a call that is repeated appends its frame again."""

    old = "found[2] .. '-' .. n"
    new = "found[2] .. '-' .. redis.call('HINCRBY', KEYS[1], 'frames', 1)"

    def source(self, script: Script) -> str:
        once = "if is_repeat then\n    return before"
        return super().source(script).replace(once, once.replace("return", "journal() return"))


class IdsOfTheClock(Replaced):
    """Frames have the time as their id, as with `*`. The clock goes back with the store."""

    faults = ("copy", "back", "lose", "kill")
    old = "local before, id = found[1] or '', found[2] .. '-' .. n\n"
    new = """local before = found[1] or ''
    local id = redis.call('INCR', KEYS[1] .. ':clock') .. '-' .. n
"""


class PlaceBehindEntries(World):
    """The place moves in a call of its own, behind that with the entries."""

    def takes(self, keys: RedisKeys, step: Step, kept: Sequence[Entry]) -> list[ScriptCall]:
        moving = log_scripts.take(keys, [step], [])
        messages = [(message_of(each.id, step.shard), ["joe/1"]) for each in kept]
        storing = log_scripts.take(keys, [], messages)
        return [self.noted(keys, storing, step.shard, kept), moving] if kept else [moving]


class PlaceBeforeEntries(PlaceBehindEntries):
    """The place moves in a call of its own, before that with the entries."""

    def takes(self, keys: RedisKeys, step: Step, kept: Sequence[Entry]) -> list[ScriptCall]:
        return super().takes(keys, step, kept)[::-1]


class PlaceUnchecked(Replaced):
    """The script moves the place from wherever it is."""

    script = "take"
    old = "if found ~= ARGV[at + 1] then"
    new = "if false then"


class LookNoted(Replaced):
    """A call with another place is noted as carried out, and so seems its repeat."""

    faults = ("lose", "full", "room", "copy", "back")
    script = "take"
    old = "        leave_out()\n"
    new = ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "broken",
    [
        NumbersOfTheStore,
        IdsOfTheClock,
        PlaceBehindEntries,
        PlaceBeforeEntries,
        PlaceUnchecked,
        LookNoted,
    ],
)
async def test_broken_scripts_are_found(redis: Redis, broken: type[World]) -> None:
    assert found_by(redis, broken)


def found_by(redis: Redis, broken: type[World] = World) -> str:
    """How a seed finds it."""
    for seed in range(MOST):
        try:
            check(broken(redis, seed, shards=2 + seed % 2))
        except AssertionError as error:
            return f"seed {seed}: {error}"
    raise AssertionError("no seed finds it")


class Trimmed(World):
    """Frames are removed soon after all have taken them. No store goes back."""

    faults = ("lose", "lose", "kill", "rival", "full", "room")
    keep_s = 0.5


@pytest.mark.slow
async def test_nothing_that_a_shard_needs_is_removed_before_it_is_taken(redis: Redis) -> None:
    removed = left = made = 0
    for seed in range(SEEDS):
        world = Trimmed(redis, seed, shards=2 + seed % 3)
        check(world)
        # Until the shards have told their places once more.
        for _ in range(50):
            world.let_go_on()
        removed += world.removed
        for keys in world.keys.values():
            left += redis.xlen(keys.log)
        made += sum(map(len, world.made.values()))
    assert removed > 5 * SEEDS
    assert left < made / 10


class WithLetters(Trimmed):
    """Shards also write letters to each other."""

    has_letters = True


@pytest.mark.slow
async def test_letters_are_done_once_and_answered_or_unknown(redis: Redis) -> None:
    asked = answered = 0
    for seed in range(SEEDS):
        world = WithLetters(redis, seed, shards=2 + seed % 2)
        check(world)
        asked += len(world.asked)
        answered += len(world.answered)
    assert asked > 10 * SEEDS
    assert answered > SEEDS


class RemovedApart(WithLetters):
    """Letters are done in one call, and leave the inbox in the next."""

    def doing(self, keys: RedisKeys, done: Done) -> list[ScriptCall]:
        doing = super().doing(keys, done._replace(name="no letter"))
        return [*doing, ScriptCall(scripts.PUT, [keys.meta, keys.inbox], [done.name, b""])]


@pytest.mark.slow
async def test_letters_that_leave_the_inbox_apart_are_found(redis: Redis) -> None:
    assert "twice" in found_by(redis, RemovedApart)


class RemovedWhenTold(Trimmed):
    """Frames are removed when a single shard has taken them."""

    def trims(self, trim: Trim, shard: int) -> Trim:
        ends = [each.readers[shard].place for each in self.shards if each.number != shard]
        return trim._replace(first=max(ends, key=lambda place: (place.fence, place.n)).id)


@pytest.mark.slow
async def test_frames_that_are_removed_too_early_are_found(redis: Redis) -> None:
    assert found_by(redis, RemovedWhenTold)


@pytest.mark.slow
@pytest.mark.interpreted
async def test_a_reader_that_does_not_ask_for_openings_is_found(redis: Redis) -> None:
    with patch.object(LogReader, "_follows", lambda *_: True):
        assert found_by(redis, Trimmed)


@pytest.mark.slow
@pytest.mark.interpreted
async def test_a_reader_that_forgets_what_it_passed_is_found(redis: Redis) -> None:
    with patch("holdfast.cluster.reading.passed_with", lambda *_: ()):
        assert found_by(redis)
