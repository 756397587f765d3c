"""Clients that share the work of a queue, and what becomes of each piece of it."""

import asyncio
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.simulation.actors import Plan
from tests.simulation.books import Books
from tests.simulation.oracle import Oracle, Publish
from tests.simulation.session import DISCONNECT, SUBSCRIBE, UNSUBSCRIBE, Session, batch_of
from tests.simulation.talker import Denied, Lost, Message

CHANNEL = "/jobs/a"
RULE = {"work_queue": True}
_PATTERNS = (CHANNEL, "/jobs/*")
_PAUSE_S = 0.2
# What a worker says of a job if it does not do it, and how often.
_REFUSED, _DEAD, _LATER = "user.update.error", "user.update.deadMessage", "communication.busy"
_VERDICTS: dict[str | None, float] = {None: 0.8, _REFUSED: 0.1, _LATER: 0.07, _DEAD: 0.03}
_DELAY_MS = 300
# How often a worker takes its time behind a connect, and how much.
_WORKS, _WORKS_S = 0.4, 1.0
# How often it then begins with another session, leaves, subscribes again, or is away, perhaps for
# longer than the server waits for it: each includes those before it.
_FORGETS, _LEAVES, _TURNS, _VANISHES = 0.02, 0.04, 0.07, 0.1
_VANISHES_S = 15.0
# How many jobs a worker has at once; None for any number.
_MOST_AT_ONCE = (1, 3, None)


@dataclass(slots=True)
class _Hand:
    """A job in the hands of a worker, and the number of this hand-over."""

    key: str
    seq: int
    taken_at: float
    # What the worker says of it: None if it has done it.
    verdict: str | None = None


@dataclass(slots=True)
class _Job:
    """What the workers know of a job."""

    # Who got it last, and when anybody first did.
    last: str = ""
    first_at: float = 0.0
    # Who has it in hand, since when.
    held: dict[str, float] = field(default_factory=dict)
    # Who has done it for sure: from when until when.
    done: dict[str, tuple[float, float]] = field(default_factory=dict)
    # Who has refused it for sure, and since when.
    refused: dict[str, float] = field(default_factory=dict)
    # Whether anybody may have done or refused it.
    may_be_done: bool = False
    may_be_refused: bool = False


class Jobs:
    """Judges whether each job is done by one worker at a time, and to its end."""

    def __init__(self, oracle: Oracle, books: Books) -> None:
        self._oracle = oracle
        self._books = books
        self._jobs: dict[str, _Job] = {}
        self._wrong: list[str] = []

    def taken(self, worker: str, key: str, *, is_marked: bool) -> None:
        """Note that a worker has got a job, perhaps marked as one that others had before."""
        now, job = self._oracle.now(), self._jobs.setdefault(key, _Job())
        if job.last and not is_marked and not self._oracle.may_have_lost(job.first_at, now):
            self._wrong.append(f"jobs: {worker} got {key} as if {job.last} had not had it")
        for other, since in job.held.items():
            if other != worker and self._oracle.was_calm(since, now):
                self._wrong.append(f"jobs: {worker} got {key}, which {other} has in hand")
        for other, (since, _) in job.done.items():
            if self._oracle.was_calm(since, now):
                self._wrong.append(f"jobs: {worker} got {key}, which {other} has done")
        refused_at = job.refused.get(worker)
        if refused_at is not None and self._oracle.was_calm(refused_at, now):
            self._wrong.append(f"jobs: {worker} got {key} again, which it has refused")
        job.first_at = job.first_at or now
        job.last = worker
        job.held[worker] = now

    def released(self, worker: str, hands: Sequence[_Hand]) -> None:
        """Note that others may get these jobs from now on."""
        for hand in hands:
            self._jobs[hand.key].held.pop(worker, None)

    def settled(self, worker: str, hand: _Hand, *, is_clear: bool) -> None:
        """Note that the server knows what became of a job, or may know it."""
        now, job = self._oracle.now(), self._jobs[hand.key]
        if hand.verdict is None:
            job.may_be_done = True
            if is_clear:
                job.done[worker] = hand.taken_at, now
        elif hand.verdict != _LATER:
            job.may_be_refused = True
            if is_clear:
                job.refused[worker] = now

    def violations(self) -> list[str]:
        """Return the jobs that are lost, that wait, or that have ended in several ways."""
        dead = self._books.dead()
        return [*self._wrong, *self._unfinished(dead), *self._wrongly_dead(dead), *self._kept()]

    def _published(self) -> Iterator[tuple[str, Publish]]:
        for key, publish in self._oracle.published.items():
            if publish.channel == CHANNEL:
                yield key, publish

    def _unfinished(self, dead: frozenset[str]) -> Iterator[str]:
        for key, publish in self._published():
            job = self._jobs.get(key)
            is_over = key in dead or (job is not None and job.may_be_done)
            if publish.id and publish.is_durable and not is_over:
                yield f"jobs: {key}, accepted as {publish.id}, is not done"

    def _wrongly_dead(self, dead: frozenset[str]) -> Iterator[str]:
        for key, _ in self._published():
            job = self._jobs.get(key, _Job())
            if key not in dead:
                continue
            if not job.may_be_refused:
                yield f"jobs: {key} is dead, and nobody has refused it"
            for worker, (since, until) in job.done.items():
                if self._oracle.was_calm(since, until):
                    yield f"jobs: {key} is dead, and {worker} has done it"

    def _kept(self) -> Iterator[str]:
        for key in sorted(self._books.work()):
            yield f"jobs: {key} is still in a store"


class Worker:
    """Does jobs, refuses some, and loses contact now and then."""

    def __init__(
        self, name: str, plan: Plan, truth: Jobs, oracle: Oracle, *, is_named: bool
    ) -> None:
        self._name = name
        self._plan = plan
        self._truth = truth
        self._oracle = oracle
        self._is_named = is_named
        self._session = Session(
            plan.manners, f"{name}/1" if is_named else "", acks=True, take=self._take
        )
        # How many sessions this worker has had: the server knows one without a name by its session.
        self._sessions = 0
        self._pattern = CHANNEL
        self._options: Message = {}
        # What came with the reply that the next connect acknowledges, and since then.
        self._handed: list[_Hand] = []
        self._fresh: list[_Hand] = []
        # Whether the server may know already what the next connect says.
        self._is_in_doubt = False

    @property
    def _who(self) -> str:
        return self._name if self._is_named else f"{self._name}#{self._sessions}"

    async def run(self) -> None:
        """Work for ever."""
        self._pattern = random.choice(_PATTERNS)
        most = random.choice(_MOST_AT_ONCE)
        self._options = {} if most is None else {"queue": {"maxEntries": most}}
        while True:
            try:
                if not self._session.client_id:
                    await self._begin()
                await self._connect()
                await self._work()
                if not self._plan.is_over:
                    await self._be_unreliable()
            except (Lost, Denied):
                self._doubt()
                await asyncio.sleep(_PAUSE_S * random.random())

    async def _begin(self) -> None:
        self._release()
        self._sessions += 1
        await self._session.begin(delivery=self._options)
        await self._tell(SUBSCRIBE)

    async def _tell(self, what: str) -> None:
        try:
            await self._session.send(what, subscription=self._pattern)
        except (Lost, Denied):
            # Without its subscription it is no session of this worker.
            self._session.forget()
            raise

    async def _connect(self) -> None:
        self._fresh = []
        self._truth.released(self._who, self._handed)
        reply = await self._session.connect(**_verdicts(self._handed))
        if batch_of(reply) is None:
            raise Lost("no batch")
        for hand in self._handed:
            self._truth.settled(self._who, hand, is_clear=not self._is_in_doubt)
        self._handed, self._is_in_doubt = self._fresh, False

    async def _work(self) -> None:
        """Do what has come, or decide not to."""
        for hand in self._handed:
            if not self._plan.is_over:
                [hand.verdict] = random.choices([*_VERDICTS], [*_VERDICTS.values()])
            if hand.verdict == _LATER:
                # What is behind it, it has done.
                break
        if not self._plan.is_over and random.random() < _WORKS:
            await asyncio.sleep(_WORKS_S * random.random())

    async def _be_unreliable(self) -> None:
        chance = random.random()
        if chance < _FORGETS:
            self._session.forget()
        elif chance < _LEAVES:
            await self._leave()
        elif chance < _TURNS:
            await self._tell(UNSUBSCRIBE)
            await self._tell(SUBSCRIBE)
        elif chance < _VANISHES:
            await self._vanish()

    async def _leave(self) -> None:
        self._release()
        try:
            await self._session.send(DISCONNECT)
        finally:
            self._session.forget()

    async def _vanish(self) -> None:
        self._truth.released(self._who, self._handed)
        await asyncio.sleep(_VANISHES_S * random.random())
        self._is_in_doubt = True

    def _doubt(self) -> None:
        """Note that the server may know what was said of jobs, and that some do not count."""
        self._truth.released(self._who, [*self._handed, *self._fresh])
        for hand in self._handed:
            self._truth.settled(self._who, hand, is_clear=False)
        self._is_in_doubt = True

    def _release(self) -> None:
        """Have no job in hand, because the session ends."""
        self._truth.released(self._who, self._handed)
        self._handed, self._is_in_doubt = [], False

    def _take(self, event: Message) -> None:
        key, told = event["data"]["key"], event["ext"]["delivery"]
        self._fresh.append(_Hand(key, told["seq"], self._oracle.now()))
        self._truth.taken(self._who, key, is_marked=bool(told.get("redelivered")))


def _verdicts(hands: Sequence[_Hand]) -> Message:
    """Return what a connect says of jobs besides its ack, which is for all others."""
    found = [_verdict(each) for each in hands if each.verdict is not None]
    if any(each.verdict == _LATER for each in hands):
        # An ack alone would not be for what is behind that one.
        found += [{"seq": each.seq, "state": "OK"} for each in hands if each.verdict is None]
    return {"delivery": {"verdicts": found}} if found else {}


def _verdict(hand: _Hand) -> Message:
    verdict = {"seq": hand.seq, "errorCode": hand.verdict, "message": "not done"}
    return verdict | ({"delay": _DELAY_MS} if hand.verdict == _LATER else {})
