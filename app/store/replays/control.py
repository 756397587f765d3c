"""Replay jobs: starts, lists and cancels them, and continues them after a restart."""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from holdfast.delivery.basics.node import NS_PER_MS
from holdfast.store.audit import Audit
from holdfast.store.format import scripts
from holdfast.store.letters.administration import Letters
from holdfast.store.letters.filter import LetterFilter
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.links.reader import Reader
from holdfast.store.replays.job_records import Job, JobState, pack_job, unpack_job
from holdfast.store.replays.parameters import ReplayOptions
from holdfast.store.store import Store

if TYPE_CHECKING:
    from holdfast.store.replays.moving import IsOver, Moving
    from holdfast.store.replays.run import Run
    from holdfast.store.replays.survey import Receivers

log = logging.getLogger(__name__)

# How many jobs are stored.
_MOST = 100
_GOODBYE_S = 1.0
_AGAIN_S = 1.0


class JobNotRunning(Exception):
    """The job is over and cannot be cancelled."""


class Replays:
    """All replays of this process.

    Args:
        new_id: Returns nanoseconds since 1970 with 19 digits, each value once.
        make_moving: Creates what moves letters to other shards, if there are any.
        given_id: Returns the id of what another shard begins in all; the empty text otherwise.
    """

    def __init__(
        self,
        store: Store,
        letters: Letters,
        reader: Reader,
        *,
        receivers: "Receivers",
        audit: Audit,
        new_id: Callable[[], str],
        given_id: Callable[[], str] = str,
        make_moving: "Callable[[IsOver], Moving] | None" = None,
    ) -> None:
        self._store = store
        self._keys = store.keys
        self._letters, self._search = letters, letters.search
        self._reader = reader
        self._receivers = receivers
        self._audit = audit
        self._new_id = new_id
        self._given_id = given_id
        self.moving = None if make_moving is None else make_moving(self._is_over)
        self._runs: dict[str, tuple[Run, asyncio.Task[None]]] = {}
        self._resuming: asyncio.Task[None] | None = None
        # How many replays have begun in this process.
        self.begun = 0

    async def _is_over(self, id: str) -> bool:
        job = await self.get(id)
        return job is not None and job.is_over

    async def plan(self, which: LetterFilter, options: ReplayOptions, who: str) -> Job:
        """Return a dry run: what a replay would do. It is not stored."""
        # Replays are rare: a start need not wait for what runs them.
        from holdfast.store.replays.survey import survey

        job = self._make(which, options, who, JobState.PLANNED)
        far = None if self.moving is None else await self.moving.look(options.to)
        await survey(job, self._search, self._receivers, far)
        return job

    async def start(self, which: LetterFilter, options: ReplayOptions, who: str) -> Job:
        """Start a replay. Returns its job once the store has it."""
        job = self._make(which, options, who, JobState.CANARY)
        if options.canary == 0:
            job.state = JobState.RUNNING
        # First, because this may fail: what is stored must begin.
        await self._forget_the_oldest()
        try:
            await self._store.run(scripts.replay_note(self._keys, job.id, pack_job(job)))
        except StoreUnavailable:
            # It may still be stored, and would be under way until the next process carries it out.
            self._store.post(scripts.replay_forget(self._keys, job.id))
            raise
        self._audit.note(who, "replay.start", job.id, detail=_described(which, options))
        self._begin(job)
        self.begun += 1
        return job

    async def resume(self) -> int:
        """Continue replays that an earlier process left unfinished. Returns how many."""
        jobs = [job for job in await self.latest() if job.is_under_way]
        for job in jobs:
            self._begin(job)
        return len(jobs)

    def resume_soon(self) -> None:
        """Continue this process's replays after `close`, as soon as the store can be read."""
        self._resuming = asyncio.create_task(self._resume_when_possible())

    async def _resume_when_possible(self) -> None:
        while True:
            try:
                await self.resume()
            except StoreUnavailable as error:
                log.info("replays cannot go on now: %s", error)
                await asyncio.sleep(_AGAIN_S)
            else:
                return

    async def get(self, id: str) -> Job | None:
        """Return the job with this id, or None if it is not stored."""
        if id in self._runs:
            return self._runs[id][0].job
        fields = await self._reader.ask("HGETALL", self._keys.replay(id))
        return unpack_job(fields) if fields else None

    async def latest(self) -> list[Job]:
        """Return the stored jobs, newest first."""
        ids = await self._reader.ask("ZREVRANGE", self._keys.replays, 0, _MOST - 1)
        jobs = [await self.get(id.decode()) for id in ids]
        return [job for job in jobs if job is not None]

    async def cancel(self, id: str, who: str) -> Job | None:
        """Cancel a replay. Messages that were sent stay sent."""
        if id not in self._runs:
            if await self.get(id) is None:
                return None
            raise JobNotRunning(id)
        run, task = self._runs[id]
        run.interrupt(who)
        await asyncio.wait([task])
        return run.job

    async def close(self) -> None:
        """Stop running. Another process continues the jobs."""
        if self._resuming is not None:
            self._resuming.cancel()
            self._resuming = None
        tasks = [task for _, task in self._runs.values()]
        for run, _ in self._runs.values():
            run.interrupt()
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=_GOODBYE_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _make(self, which: LetterFilter, options: ReplayOptions, who: str, state: JobState) -> Job:
        if options.edit is not None and len(which.ids) != 1:
            raise ValueError("new data can be given to only one letter")
        # The clock of another shard may be ahead of this one's, or behind it.
        begun = self._new_id()
        return Job(
            id=self._given_id() or begun,
            who=who,
            which=which,
            options=options,
            state=state,
            started=int(begun) // NS_PER_MS,
            begun=begun,
        )

    def _begin(self, job: Job) -> None:
        from holdfast.store.replays.run import Run

        run = Run(job, self._store, self._search, self._receivers, self.moving)
        self._runs[job.id] = (run, asyncio.create_task(self._drive(run)))

    async def _drive(self, run: "Run") -> None:
        from holdfast.store.replays.run import RunInterrupted

        job = run.job
        try:
            await run.drive()
        except RunInterrupted:
            if run.cancelled_by:
                job.state = JobState.CANCELLED
                job.reason = f"cancelled by {run.cancelled_by}"
        except Exception as error:
            log.exception("replay %s failed", job.id)
            job.state = JobState.FAILED
            job.reason = type(error).__name__
        finally:
            del self._runs[job.id]
        if not job.is_under_way:
            job.finished = int(self._new_id()) // NS_PER_MS
            detail = {"sent": job.sent, "died_again": job.failed, "reason": job.reason}
            self._audit.note(job.who, f"replay.{job.state.value}", job.id, detail=detail)
        run.note()

    async def _forget_the_oldest(self) -> None:
        """Make room for one more."""
        ids = await self._reader.ask("ZRANGE", self._keys.replays, 0, -_MOST)
        for job in [id.decode() for id in ids if id.decode() not in self._runs]:
            self._store.post(scripts.replay_forget(self._keys, job))


def _described(which: LetterFilter, options: ReplayOptions) -> dict[str, Any]:
    """Return the job's options for the audit, because jobs are removed eventually."""
    details: dict[str, Any] = {} if options.to is None else {"to": options.to}
    if options.data is not None:
        details |= {"edited": which.ids[0], "bytes": len(options.data.encode())}
    return details
