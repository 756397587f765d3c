"""Work that one worker has is done by sessions of any."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.web.forwarding.operators import operator
from tests.web.forwarding.workers import Workers, workers
from tests.web.people import Person, until
from tests.web.sharding.test_crossing import publish

pytestmark = pytest.mark.untraced

JOBS = "/jobs/a"
LIMIT_S = 60.0


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

        async def are_listed() -> bool:
            # A publisher hears of its message from the store, so perhaps before operators.
            found = (await ada.get("/work-queues"))["items"]
            return [(each["channel"], each["waiting"], each["receivers"]) for each in found] == [
                (JOBS, 3, 0)
            ]

        await until(are_listed)
        entries = await ada.get("/work-queue", channel=JOBS)
        assert len(entries["items"]) == 3
        assert (await ada.change("DELETE", "/work-queue", channel=JOBS))["discarded"] == 3
        assert (await ada.get("/work-queues"))["items"] == []
