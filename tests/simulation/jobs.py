"""Clients that share the work of a queue, and what becomes of each piece of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.simulation.books import Books
from tests.simulation.oracle import Oracle, Publish
from tests.simulation.workers import LATER, Hand, Ledger, Trade

CHANNEL = "/jobs/a"
RULE = {"work_queue": True}
# Some do one job at a time, or three.
TRADE = Trade(
    patterns=(CHANNEL, "/jobs/*"),
    verdicts={None: 0.8, "user.update.error": 0.1, LATER: 0.07, "user.update.deadMessage": 0.03},
    delays_ms=(300,),
    options=({"queue": {"maxEntries": 1}}, {"queue": {"maxEntries": 3}}, {}),
)


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


class Jobs(Ledger):
    """Judges whether each job is done by one worker at a time, and to its end."""

    def __init__(self, oracle: Oracle, books: Books) -> None:
        self._oracle = oracle
        self._books = books
        self._jobs: dict[str, _Job] = {}
        self._wrong: list[str] = []

    def taken(self, worker: str, hand: Hand, *, is_marked: bool) -> None:
        key = hand.key
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

    def released(self, worker: str, hands: Sequence[Hand]) -> None:
        for hand in hands:
            self._jobs[hand.key].held.pop(worker, None)

    def says(self, worker: str, hands: Sequence[Hand]) -> None:
        # The server may hold the reply until the world ends.
        for hand in hands:
            job = self._jobs[hand.key]
            job.may_be_done |= hand.verdict is None
            job.may_be_refused |= hand.verdict not in (None, LATER)

    def settled(self, worker: str, hand: Hand) -> None:
        now, job = self._oracle.now(), self._jobs[hand.key]
        if hand.verdict is None:
            job.done[worker] = hand.taken_at, now
        elif hand.verdict != LATER:
            job.refused[worker] = now

    def violations(self) -> list[str]:
        """Return the jobs that are lost, that wait, or that have ended in several ways."""
        dead = frozenset(letter.key for letter in self._books.letters())
        return [*self._wrong, *self._unfinished(dead), *self._wrongly_dead(dead), *self._kept()]

    def _published(self) -> Iterator[tuple[str, Publish]]:
        for key, publish in self._oracle.published.items():
            if publish.channel == CHANNEL:
                yield key, publish

    def _unfinished(self, dead: frozenset[str]) -> Iterator[str]:
        for key, publish in self._published():
            job = self._jobs.get(key)
            is_over = key in dead or (job is not None and job.may_be_done)
            if not publish.id or not publish.is_durable or is_over:
                continue
            if not self._oracle.may_be_gone(publish):
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
