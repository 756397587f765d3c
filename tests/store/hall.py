"""Receivers for tests of replays: they ack, keep or refuse what is delivered."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from holdfast.delivery.letters.dead import DeadLetter
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.outcomes import ACKED
from holdfast.store.letters.filter import LetterFilter
from holdfast.store.replays.control import Replays
from holdfast.store.replays.job_records import Job, JobState, Sent
from holdfast.store.replays.parameters import ReplayOptions
from tests.store.servers import ValkeyServer
from tests.store.store_process import BASE, StoreProcess, letter, session, store_process, until

ALL = LetterFilter()
FAST = ReplayOptions(rate=10_000, canary=0)


class Hall:
    """Sessions that ack what is delivered, keep it waiting, or refuse it."""

    def __init__(self, at: StoreProcess) -> None:
        self.at = at
        self.durable: dict[str, bool] = {"joe/1": True, "ann/1": True, "joe/-5": False}
        self.away: set[str] = set()
        self.delivered: list[tuple[str, int]] = []
        # The letters that they were made from.
        self.letters: list[int] = []
        self.messages: list[Message] = []
        self.unsettled: set[Sent] = set()
        self.is_acking = True
        self.refused: set[int] = set()

    def is_durable(self, key: str) -> bool | None:
        return self.durable.get(key)

    def is_away(self, key: str) -> bool:
        return key in self.away

    def deliver(self, key: str, message: Message, letter: int) -> None:
        self.delivered.append((key, message.id - BASE))
        self.letters.append(letter - BASE)
        self.messages.append(message)
        self.unsettled.add(Sent(key, message.id))

    def queued(self, sent: Sequence[Sent]) -> Sequence[Sent]:
        if self.is_acking:
            for each in sent:
                self.settle(each)
        return [each for each in sent if each in self.unsettled]

    def settle(self, sent: Sent) -> None:
        if sent not in self.unsettled:
            return
        self.unsettled.remove(sent)
        n = sent.id - BASE
        if n in self.refused:
            dead = letter(int(self.at.new_id()) - BASE, of=n, receiver=sent.receiver, generation=1)
            self.at.store.dead_letter(
                [dead], sent.receiver if self.durable[sent.receiver] else None
            )
        else:
            self.at.store.settle(sent.receiver, [sent.id], ACKED)


Scene = tuple[StoreProcess, Hall, Replays]


@asynccontextmanager
async def stage(server: ValkeyServer) -> AsyncIterator[Scene]:
    async with store_process(server) as at:
        hall = Hall(at)
        jobs = Replays(
            at.store, at.letters, at.reader, receivers=hall, audit=at.audit, new_id=at.new_id
        )
        try:
            yield at, hall, jobs
        finally:
            await jobs.close()


async def prepare(at: StoreProcess, *letters: DeadLetter) -> None:
    for key in ("joe/1", "ann/1"):
        at.store.save(session(key))
    at.store.dead_letter(letters, None)
    await at.answered()


async def ended(job: Job) -> JobState:
    await until(lambda: not job.is_under_way)
    await asyncio.sleep(0)
    return job.state


async def resumed(hall: Hall, jobs: Replays, id: str) -> Job:
    """The job, resumed in a process that has loaded what the one before it left."""
    loaded = await hall.at.loaded()
    for key, each in loaded.items():
        hall.unsettled |= {Sent(key, message.id) for _, message in each.entries}
    assert await jobs.resume() == 1
    job = await jobs.get(id)
    assert job is not None
    return job
