"""What reads the stores of other shards, and its tasks."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.compose.counting import Counting
from holdfast.sharding import following as module
from holdfast.sharding.following import Following
from holdfast.web.tasks import cancel
from tests.store.store_process import until

# Other classes take the place of some, which compiled code does not let in.
pytestmark = pytest.mark.interpreted


class World:
    """A shard whose only other one can be read once `opens` is called."""

    def __init__(self) -> None:
        self.wanted: set[int] = set()
        self.may_read = asyncio.Event()
        self.reads = 0
        known = SimpleNamespace(
            wanted=self.wanted, want_all=lambda: self.wanted.add(1), lose=lambda _: None
        )
        others = SimpleNamespace(
            known=known,
            homes=SimpleNamespace(contacts=SimpleNamespace(clock=lambda: 0.0)),
            agreements=SimpleNamespace(holders_to_read=lambda _: ()),
            lost_ends=SimpleNamespace(saw=lambda *_: None),
        )
        member: Any = SimpleNamespace(
            others=others,
            readers={1: SimpleNamespace(place=SimpleNamespace(fence=1, nonce="", n=1))},
            learn_all=lambda shard, _: self.wanted.discard(shard),
            is_awaited=False,
            tick=lambda: None,
        )
        facts: Any = SimpleNamespace(
            are_waited_for=False, has_read=lambda *_: None, tick=lambda: None
        )
        store: Any = SimpleNamespace(told=self._told, close=lambda: None)
        self.following = Following(member, {1: store}, facts, lambda: 0.0)

    async def _told(self) -> Any:
        self.reads += 1
        await self.may_read.wait()
        return SimpleNamespace(end="")

    async def run(self) -> asyncio.Task[None]:
        task = asyncio.create_task(self.following.run())
        await asyncio.sleep(0)
        return task


async def test_nothing_reads_in_other_stores_once_a_shard_follows_them_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def rests(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(Following, "_read", rests)
    world = World()
    caught_up: list[int] = []
    before = asyncio.all_tasks()
    run = await world.run()
    world.following.catch_up(lambda: caught_up.append(world.reads))
    await until(lambda: world.reads == 1)
    await cancel(run)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before
    assert caught_up == []
    # It still has to catch up before it may speak.
    run = await world.run()
    world.may_read.set()
    await until(lambda: caught_up == [2])
    await cancel(run)


async def test_a_shard_that_shows_no_more_that_it_lives_is_told() -> None:
    async def fails() -> None:
        raise ValueError("broken")

    log: Any = SimpleNamespace(counter=lambda *_: SimpleNamespace(run=fails))
    inclusion: Any = SimpleNamespace(shown=None)
    primary: Any = None
    failures: list[str] = []
    counting = Counting(
        log, primary, inclusion, lambda: 0.0, lambda error: failures.append(str(error))
    )
    counting.begin()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert failures == ["broken"]
    await counting.end()


def following(readers: dict[int, Any]) -> Following:
    """What follows shards 1 and 2, of which those with a reader could be read."""
    member: Any = SimpleNamespace(readers=readers)
    stores: Any = dict.fromkeys((1, 2))
    facts: Any = SimpleNamespace()
    return Following(member, stores, facts, lambda: 0.0)


async def test_logs_are_waited_for_once_until_they_are_taken_as_at_the_start() -> None:
    first, second = SimpleNamespace(is_behind_start=False), SimpleNamespace(is_behind_start=True)
    readers = {1: first}
    found = following(readers)
    assert found.late() == [1, 2]
    first.is_behind_start = True
    assert found.late() == [2]
    # What comes later is no matter of the start.
    first.is_behind_start = False
    readers[2] = second
    assert found.late() == []


async def test_a_log_whose_store_is_away_is_waited_for_with_a_limit(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_LATE_S", 0.05)
    found = following({1: SimpleNamespace(is_behind_start=True)})
    assert found.is_away(2)
    await found.all_taken()
    assert caplog.messages == ["this process goes on without the log of shard 2 for now"]
    assert found.late() == []
