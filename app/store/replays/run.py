"""Runs one replay: in order, at a rate, canary first. Stops when too many messages die again."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from holdfast.delivery.letters.dead import DeadLetter
from holdfast.store.format import scripts
from holdfast.store.format.letter_records import message_of
from holdfast.store.format.scripts import Take
from holdfast.store.letters.filter import ALL_LETTERS
from holdfast.store.letters.search import LetterSearch
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.replays.job_records import (
    Job,
    JobState,
    Sent,
    SkipReason,
    is_taken,
    pack_job,
)
from holdfast.store.replays.survey import Order, Receivers, ReplayPosition, survey, unfit
from holdfast.store.store import Store

if TYPE_CHECKING:
    from holdfast.store.replays.moving import Moving

# Interval between two checks of outcomes, and between retries while the store is unavailable.
_COUNT_S = 0.25
_AWAY_S = 1.0
_TIMEOUT_S = 5.0
# How long after the last letter outcomes are still counted.
_LATE_S = 60.0
# How many messages may be unsettled. Beyond that, the replay waits for receivers.
_WINDOW = 10_000
# Letters and bytes of one step, and steps per second for an even rate.
_STEP = 100
_STEP_BYTES = 2 * 1024**2
_STEPS_PER_S = 10
# How many messages must be settled before failures stop a replay that has passed its canary.
_MEANINGFUL = 10


class RunInterrupted(Exception):
    """The run ends here. The job's state says why, or that it will be continued."""


class Run:
    """Runs one job until it is over or this process stops."""

    def __init__(
        self,
        job: Job,
        store: Store,
        search: LetterSearch,
        receivers: Receivers,
        moving: "Moving | None" = None,
    ) -> None:
        self.job = job
        self._moving = moving
        self._store = store
        self._search = search
        self._receivers = receivers
        self._loop = asyncio.get_running_loop()
        self._interrupted = asyncio.Event()
        self.cancelled_by = ""
        self._due = self._loop.time()
        # Unsettled messages, and the last dead letter examined for them.
        self._out: set[Sent] = set()
        self._seen = job.until
        self._counted_at = self._loop.time()
        # The message of the last letter sent or being sent.
        self._message = 0
        # An earlier process sent some, whose outcome is not known here.
        self._is_taken_over = job.sent > 0

    def interrupt(self, cancelled_by: str = "") -> None:
        """End between two steps: permanently if cancelled, otherwise to be continued later."""
        self.cancelled_by = cancelled_by
        self._interrupted.set()

    async def drive(self) -> None:
        """Replay the remaining letters. Raises `RunInterrupted` if the run ends earlier."""
        while True:
            try:
                if self._moving is not None:
                    await self._moving.move(self.job, self._pause)
                are_brought = self._moving is not None
                order = await survey(
                    self.job, self._search, self._receivers, are_brought=are_brought
                )
                self.note()
                if self._is_taken_over:
                    await self._recall()
                    self._is_taken_over = False
                await self._go_on(order)
                break
            except StoreUnavailable:
                await self._pause(_AWAY_S)
        await self._wait_for_late_ones()
        self.job.state = JobState.DONE

    async def _recall(self) -> None:
        """Restore the counts from the letters that the job has taken."""
        job = self.job
        self._out, self._seen = set(), job.until
        async for step, last in self._search.scan(job.which.model_copy(update={"state": None})):
            taken = [job.message(letter) for letter in step if is_taken(job, letter)]
            self._out |= {Sent(job.options.to or each.key, each.message) for each in taken}
            if len(self._out) >= job.sent or (last >= job.until and self._moving is None):
                break
        # Purging a letter does not undo its replay.
        job.acked, job.failed = job.sent - len(self._out), 0
        await self._count_settled()
        self.note()

    async def _go_on(self, order: Order) -> None:
        job = self.job
        self._message = job.reached_message
        for places in order.steps(_STEP, _STEP_BYTES):
            fit, skipped = await self._fit(places)
            for part in self._parts(fit):
                skipped += await self._send(part)
            for why, count in skipped.items():
                job.skip(why, count)
            job.reached = places[-1].text
            self.note()

    async def _fit(
        self, places: list[ReplayPosition]
    ) -> tuple[list[DeadLetter], Counter[SkipReason]]:
        """Return the letters at these positions that can be replayed, and count the others."""
        job, fit = self.job, []
        skipped: Counter[SkipReason] = Counter()
        found = await self._search.whole([place.id for place in places])
        for each in found:
            if each is None:
                skipped[SkipReason.GONE] += 1
                continue
            letter = job.message(each)
            if is_taken(job, letter):
                # The letter was sent before this process continued the job.
                self._message = letter.message
            elif why := unfit(job, letter, self._receivers):
                skipped[why] += 1
            elif job.options.to is not None and letter.message == self._message:
                skipped[SkipReason.REPEATED] += 1
            else:
                self._message = letter.message
                fit.append(letter)
        return fit, skipped

    def _parts(self, letters: list[DeadLetter]) -> Iterator[list[DeadLetter]]:
        job = self.job
        part: list[DeadLetter] = []
        size = 0
        for letter in letters:
            part.append(letter)
            size += letter.size
            most = min(_STEP, max(1, int(job.options.rate / _STEPS_PER_S)))
            if job.state is JobState.CANARY:
                most = max(1, min(most, job.options.canary - job.sent))
            if len(part) >= most or size > _STEP_BYTES:
                yield part
                part, size = [], 0
        if part:
            yield part

    async def _send(self, letters: list[DeadLetter]) -> Counter[SkipReason]:
        job = self.job
        if job.state is JobState.CANARY and job.sent >= job.options.canary:
            await self._wait_for_canary()
        while len(self._out) > _WINDOW:
            await self._pause(_COUNT_S)
            await self._count_settled()
        await self._pause(self._due - self._loop.time())
        self._due = max(self._due, self._loop.time() - 1) + len(letters) / job.options.rate
        skipped = await self._take(letters)
        if job.state is JobState.RUNNING and self._loop.time() > self._counted_at + _COUNT_S:
            await self._count_settled()
        return skipped

    async def _take(self, letters: list[DeadLetter]) -> Counter[SkipReason]:
        """Turn letters into messages; repeat until it succeeds, as taken letters must be sent."""
        job = self.job
        skipped: Counter[SkipReason] = Counter()
        takes = []
        for letter in letters:
            receiver = job.options.to or letter.key
            is_durable = self._receivers.is_durable(receiver)
            if is_durable is None:
                skipped[SkipReason.RECEIVER] += 1
            else:
                takes.append(Take(letter, receiver, is_durable))
        results, notes = await self._taken(takes)
        for take, result in zip(takes, results, strict=True):
            if result != b"taken":
                skipped[SkipReason(result.decode())] += 1
                continue
            if take.is_durable:
                self._store.marked(take.receiver, (take.letter.message,))
            message = message_of(take.letter, take.receiver)
            message.is_durable = take.is_durable
            self._receivers.deliver(take.receiver, message, int(take.letter.id))
            self._out.add(Sent(take.receiver, message.id))
            job.sent += 1
        self._store.journal.skip_notes(notes)
        return skipped

    async def _taken(self, takes: list[Take]) -> tuple[list[bytes], list[int]]:
        """Return the outcome of each, and the numbers of the notes that the caller must skip."""
        notes: list[int] = []
        while takes:
            call, note = await self._store.journal.replay_take(self.job.id, takes)
            if note is not None:
                notes.append(note)
            try:
                results = await self._store.run(call, timeout_s=None)
                return cast("list[bytes]", results), notes
            except StoreUnavailable:
                await asyncio.sleep(_AWAY_S)
        return [], notes

    # Outcomes

    async def _wait_for_canary(self) -> None:
        while self._out:
            await self._count_settled()
            await self._pause(_COUNT_S if self._out else 0)
        self.job.state = JobState.RUNNING
        self.note()

    async def _wait_for_late_ones(self) -> None:
        deadline = self._loop.time() + _LATE_S
        while self._out and self._loop.time() < deadline:
            try:
                await self._count_settled()
            except StoreUnavailable:
                pass
            await self._pause(_COUNT_S if self._out else 0)

    async def _count_settled(self) -> None:
        """Count settled messages. Stops if too many died again."""
        self._counted_at = self._loop.time()
        if not self._out:
            return
        queued = set(self._receivers.queued(sorted(self._out)))
        await self._behind_the_dead()
        died = set()
        async for step, last in self._search.scan(ALL_LETTERS, self._seen):
            self._seen = last
            died |= {Sent(letter.key, letter.message) for letter in step}
        died &= self._out
        acked = self._out - queued - died
        self._out -= died | acked
        self.job.failed += len(died)
        self.job.acked += len(acked)
        self._stop_if_it_fails()

    async def _behind_the_dead(self) -> None:
        """Wait until all deaths so far are stored."""
        answered = asyncio.Event()
        self._store.after(answered.set)
        try:
            await asyncio.wait_for(answered.wait(), _TIMEOUT_S)
        except TimeoutError as error:
            raise StoreUnavailable("the store does not answer") from error

    def _stop_if_it_fails(self) -> None:
        job = self.job
        settled = job.acked + job.failed
        is_canary = job.state is JobState.CANARY
        base = settled + len(self._out) if is_canary else max(settled, _MEANINGFUL)
        if job.failed > job.options.stop_at * base:
            job.state = JobState.STOPPED
            job.reason = f"{job.failed} of {settled} died again"
            raise RunInterrupted

    async def _pause(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
        else:
            try:
                await asyncio.wait_for(self._interrupted.wait(), seconds)
            except TimeoutError:
                return
        if self._interrupted.is_set():
            raise RunInterrupted

    def note(self) -> None:
        """Store the job's progress."""
        keys, job = self._store.keys, self.job
        self._store.post(scripts.replay_note(keys, job.id, pack_job(job)))
