"""Work that one worker has is done by sessions of any, also while workers are killed."""

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.test_workers import deployed
from tests.web.forwarding.operators import operator
from tests.web.forwarding.workers import Workers, workers
from tests.web.people import Person
from tests.web.sharding.fleet import Visitor, fleet
from tests.web.sharding.test_crossing import publish

pytestmark = pytest.mark.untraced

JOBS = "/jobs/a"
LIMIT_S = 30.0


@pytest.fixture
async def both(tmp_path: Path) -> AsyncIterator[Workers]:
    rules = {"/jobs/**": {"work_queue": True}}
    async with workers(tmp_path, chat=False, channels=rules) as both:
        yield both


class Taker:
    """A named session at a worker that takes work."""

    def __init__(self, person: Person) -> None:
        self.person = person
        self.jobs: list[Any] = []
        self._ack = 0

    @classmethod
    async def come(cls, both: Workers, door: int, prefix: str = "user") -> "Taker":
        person = both.person(door)
        await person.handshake(f"{both.subject_of(door, prefix)}/1")
        reply = await person.reply("/meta/subscribe", subscription=JOBS)
        assert reply["successful"], reply
        return cls(person)

    async def work(self, timeout_ms: int = 100) -> None:
        """Ack what came before, and take what there is."""
        replies = await self.person.connect(timeout_ms, ack=self._ack)
        self.jobs += [each["data"] for each in replies if "data" in each]
        self._ack = replies[-1].get("ext", {}).get("ack", self._ack)


async def until_done(wanted: int, *takers: Taker) -> None:
    async with asyncio.timeout(LIMIT_S):
        while sum(len(each.jobs) for each in takers) < wanted:
            for each in takers:
                await each.work()
    for each in takers:
        await each.work()


async def test_sessions_of_all_workers_share_work_from_all_doors(
    both: Workers, tmp_path: Path
) -> None:
    takers = [await Taker.come(both, door) for door in (0, 1)]
    writers = [both.person(door) for door in (0, 1)]
    for writer in writers:
        await writer.handshake()
    async with operator(both, tmp_path) as ada:
        async with asyncio.timeout(LIMIT_S):
            # A session of the other worker takes work when the home has heard of it.
            while True:
                await publish(writers[0], JOBS, "first")
                await until_done(1, *takers)
                if all("first" in each.jobs for each in takers):
                    break
        for each in takers:
            each.jobs.clear()
        for number in range(20):
            await publish(writers[number % 2], JOBS, number)
        await until_done(20, *takers)
        assert sorted(takers[0].jobs + takers[1].jobs) == [*range(20)]
        assert all(each.jobs for each in takers)
        assert (await ada.get("/work-queues"))["items"] == []
        receivers = await ada.get("/work-queue/receivers", channel=JOBS)
        assert len(receivers["items"]) == 2


async def test_operators_see_and_clear_what_waits_at_any_worker(
    both: Workers, tmp_path: Path
) -> None:
    writer = both.person(0)
    await writer.handshake()
    for number in range(3):
        await publish(writer, JOBS, number)
    async with operator(both, tmp_path) as ada:
        [found] = (await ada.get("/work-queues"))["items"]
        assert (found["channel"], found["waiting"], found["receivers"]) == (JOBS, 3, 0)
        entries = await ada.get("/work-queue", channel=JOBS)
        assert len(entries["items"]) == 3
        assert (await ada.change("DELETE", "/work-queue", channel=JOBS))["discarded"] == 3
        assert (await ada.get("/work-queues"))["items"] == []


@pytest.mark.slow
@pytest.mark.parametrize("killed", [0, 1])
async def test_work_is_done_while_a_worker_is_killed(tmp_path: Path, killed: int) -> None:
    async with (
        fleet(tmp_path) as fleet_,
        Visitor(fleet_, 0) as writer,
        Visitor(fleet_, 0, "joe/1") as joe,
        Visitor(fleet_, 1, "ann/1") as ann,
    ):
        accepted: list[int] = []
        for each in (joe, ann):
            await each.subscribe(JOBS)
        for round in range(2):
            writing = asyncio.create_task(_write(writer, 100 * round, accepted))
            for _ in range(3):
                await joe.listen(50)
                await ann.listen(50)
            await fleet_.end(killed, signal.SIGKILL)
            await fleet_.start(killed)
            await writing
        await _write(writer, 1000, accepted)
        async with asyncio.timeout(LIMIT_S):
            while not {*accepted} <= {*joe.heard, *ann.heard}:
                await joe.listen(50)
                await ann.listen(50)
        for _ in range(3):
            await joe.listen(50)
            await ann.listen(50)
        counts = Counter(joe.heard + ann.heard)
        assert len(accepted) > 50
        # What the killed worker's session had may come again.
        assert sum(counts.values()) < 2 * len(counts), fleet_.log()


async def _write(writer: Visitor, first: int, accepted: list[int]) -> None:
    for number in range(first, first + 60):
        if await writer.publish(JOBS, number):
            accepted.append(number)
        await asyncio.sleep(0.005)


RULES = """
[channels."/jobs/**"]
work_queue = true
"""


@pytest.mark.slow
async def test_a_restart_of_all_workers_leaves_work_with_its_sessions(tmp_path: Path) -> None:
    (tmp_path / "holdfast.toml").write_text(RULES)
    async with deployed(tmp_path, 2, "--config", "holdfast.toml") as deployment:
        people = [Person(deployment.url) for _ in range(4)]
        writer = Person(deployment.url)
        try:
            await writer.handshake()
            takers = [Taker(each) for each in people]
            for number, each in enumerate(takers):
                await each.person.handshake(f"user{number}/1")
                reply = await each.person.reply("/meta/subscribe", subscription=JOBS)
                assert reply["successful"], reply
                # Before its first connect, a session gets no work.
                await each.work(0)
            # All workers know of all sessions soon.
            await asyncio.sleep(1)
            for number in range(20):
                assert (await writer.reply(JOBS, data=number))["successful"]
            async with asyncio.timeout(LIMIT_S):
                # Mostly once for each, so that all of it is in flight.
                while sum(len(each.jobs) for each in takers) < 20:
                    for each in takers:
                        await each.work(500)
            shown = [number for each in takers for number in each.jobs]
            assert sorted(shown) == [*range(20)]
            assert all(each.jobs for each in takers)
            assert await deployment.restart() == {"done": True}
            # What is in flight is theirs as before: acks count, and no other session gets it.
            for _ in range(3):
                for each in takers:
                    await each.work(200)
            assert sorted(number for each in takers for number in each.jobs) == [*range(20)]
            assert (await writer.reply(JOBS, data="more"))["successful"]
            async with asyncio.timeout(LIMIT_S):
                while not any("more" in each.jobs for each in takers):
                    for each in takers:
                        await each.work(100)
        finally:
            for person in (*people, writer):
                await person.http.close()
