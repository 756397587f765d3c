"""Moves dead letters to the shard of the session that a replay sends them to.

That shard replays them, with all that it has for the session, in their order. A letter that moves
is first taken for the job, so that no other replay sends it; then the other shard stores it as a
new one of the job, once however often it is asked; then it is removed here. So one of them has it,
whichever process is killed.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast

from holdfast.delivery.letters.dead import DeadLetter, LetterState
from holdfast.delivery.ports.far_calls import AskerPort, CallsPort
from holdfast.store.format import letter_records, scripts
from holdfast.store.format.scripts import Take
from holdfast.store.letters.administration import Letters
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.replays.job_records import Job, is_taken
from holdfast.store.store import Store

# What the operations are called, of the shard that has the session.
SESSION: Final = "replay session"
LETTERS: Final = "replay letters"
ALL_MOVED: Final = "replay moved"
# How many dead letters, and roughly how many bytes, one call has.
_PART = 100
_PART_BYTES = 128 * 1024
# How long one waits for the others of which nothing is heard, and how often it looks.
_PATIENCE_S = 20.0
_LOOK_S = 0.05
_AGAIN_S = 0.5
# How many jobs are remembered.
_MOST_JOBS = 100

Pause = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class FarSession:
    """A session of another shard."""

    shard: int
    is_away: bool


class Whereabouts(Protocol):
    """Knows which sessions there are, and which shard has the others."""

    def is_durable(self, receiver: str, /) -> bool | None:
        """Return whether the session is durable, or None if it does not exist here."""
        ...

    def is_away(self, receiver: str, /) -> bool:
        """Return whether messages for this session wait until its client returns."""
        ...

    def shard_of(self, receiver: str, /) -> int | None:
        """Return the shard that has the session; None if it is here, or nowhere else."""
        ...


class _Heard:
    """What is known of one job of all shards."""

    def __init__(self, now: float) -> None:
        # The shards that have moved everything, whether this one has, and when one was heard last.
        self.shards: set[int] = set()
        self.has_moved = False
        self.at = now


# Returns whether a job has ended here.
IsOver = Callable[[str], Awaitable[bool]]


class Moving:
    """Moves letters of this shard's replays, and takes letters of others.

    Args:
        is_away: Returns whether a shard cannot be reached.
        is_over: Returns whether a job has ended here. Raises `StoreUnavailable`.
    """

    def __init__(
        self,
        store: Store,
        letters: Letters,
        whereabouts: Whereabouts,
        others: Sequence[int],
        calls: CallsPort,
        *,
        is_away: Callable[[int], bool],
        is_over: IsOver,
    ) -> None:
        self._store = store
        self._letters = letters
        self._whereabouts = whereabouts
        self._others, self._calls = others, calls
        self._is_away, self._is_over = is_away, is_over
        self._loop = asyncio.get_running_loop()
        self._jobs: dict[str, _Heard] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        calls.handle(SESSION, self._look)
        calls.handle(LETTERS, self._take_letters)
        calls.handle(ALL_MOVED, self._hear_all)

    async def look(self, receiver: str | None) -> FarSession | None:
        """Return a session of another shard. Raises `StoreUnavailable` if that does not answer."""
        if receiver is None or (shard := self._whereabouts.shard_of(receiver)) is None:
            return None
        found = await self._ask(shard, SESSION, {"session": receiver})
        if not found:
            raise StoreUnavailable(f"shard {shard} does not answer")
        return FarSession(shard, found["is_away"]) if found["is_there"] else None

    # Moving

    async def move(self, job: Job, pause: Pause) -> None:
        """Move all letters of the job whose sessions other shards have, and wait for theirs."""
        far = await self.look(job.options.to)
        which = job.which.model_copy(update={"state": None})
        async for step, last in self._letters.search.scan(which):
            leaving: dict[int, list[str]] = defaultdict(list)
            for letter in step:
                shard = self._shard_of(job, letter, far)
                if shard is not None and letter.id < job.until and _is_meant(job, letter):
                    leaving[shard].append(letter.id)
            for shard, ids in leaving.items():
                for at in range(0, len(ids), _PART):
                    await self._move(job, shard, ids[at : at + _PART], pause)
            if last >= job.until:
                break
        self._heard(job.id).has_moved = True
        await self._wait_for_others(job, pause)

    def _shard_of(self, job: Job, letter: DeadLetter, far: FarSession | None) -> int | None:
        if job.options.to is not None:
            return None if far is None else far.shard
        return self._whereabouts.shard_of(letter.key)

    async def _move(self, job: Job, shard: int, ids: Sequence[str], pause: Pause) -> None:
        part: list[DeadLetter] = []
        size = 0
        for letter in [each for each in await self._letters.search.whole(ids) if each is not None]:
            part.append(letter)
            size += letter.size
            if size > _PART_BYTES:
                await self._move_part(job, shard, part, pause)
                part, size = [], 0
        await self._move_part(job, shard, part, pause)

    async def _move_part(
        self, job: Job, shard: int, letters: Sequence[DeadLetter], pause: Pause
    ) -> None:
        taken = await self._take(job, letters)
        if not taken:
            return
        found = [letter_records.pack_letter(each, {}).decode() for each in taken]
        asked = {"job": job.id, "letters": found}
        while not await self._ask(shard, LETTERS, asked):
            await pause(_AGAIN_S)
        await self._letters.remove(taken)

    async def _take(self, job: Job, letters: Sequence[DeadLetter]) -> list[DeadLetter]:
        """Take letters for the job. Returns them as new ones of it, with those that it has taken.

        By the clock of the shard that gets them, they may have died after the job began.
        """
        new = [each for each in letters if not is_taken(job, each)]
        taken = [
            each._replace(state=LetterState.NEW, replays=max(0, each.replays - 1))
            for each in letters
            if is_taken(job, each)
        ]
        if not new:
            return taken
        takes = [Take(each, job.options.to or each.key, False) for each in new]
        form = self._store.layout.form
        call = scripts.replay_take(self._store.keys, job.id, takes, form)
        results = cast("list[bytes]", await self._store.run(call, timeout_s=None))
        more = [each for each, how in zip(new, results, strict=True) if how == b"taken"]
        job.moved += len(more)
        return taken + [each._replace(job=job.id) for each in more]

    async def _wait_for_others(self, job: Job, pause: Pause) -> None:
        untold = {*self._others}
        heard = self._heard(job.id)
        heard.at = self._loop.time()
        while True:
            for shard in [each for each in untold if self._calls.may_ask(each)]:
                untold.discard(shard)
                self._tell(job, shard, untold)
            awaited = (each for each in self._others if each in untold or each not in heard.shards)
            is_late = self._loop.time() - heard.at >= _PATIENCE_S
            if is_late or all(self._is_away(each) for each in awaited):
                return
            await pause(_LOOK_S)

    def _tell(self, job: Job, shard: int, untold: set[int]) -> None:
        """Tell a shard that it has all letters from here, or let it be told again.

        It answers whether this one has all of its letters: it may have said so to a process before.
        """

        def answered(answer: dict[str, Any] | None) -> None:
            if answer is None:
                untold.add(shard)
            elif answer.get("are_all"):
                self._heard(job.id).shards.add(shard)

        self._calls.send(shard, ALL_MOVED, {"job": job.id}, answered)

    async def _ask(
        self, shard: int, operation: str, asked: dict[str, Any]
    ) -> dict[str, Any] | None:
        """Return what the other shard answers; None if it does not."""
        if not self._calls.may_ask(shard):
            return None
        answer: asyncio.Future[dict[str, Any] | None] = self._loop.create_future()
        self._calls.send(shard, operation, asked, lambda found: _set(answer, found))
        return await answer

    # What others ask

    def _look(self, asked: Mapping[str, Any], asker: AskerPort, _: float) -> None:
        is_there = self._whereabouts.is_durable(asked["session"]) is not None
        is_away = self._whereabouts.is_away(asked["session"])
        asker.answer({"is_there": is_there, "is_away": is_away})

    def _take_letters(self, asked: Mapping[str, Any], asker: AskerPort, _: float) -> None:
        self._heard(asked["job"]).at = self._loop.time()
        letters = [letter_records.unpack_letter(each.encode()) for each in asked["letters"]]
        self._begin(self._store_letters(letters, asker))

    def _hear_all(self, asked: Mapping[str, Any], asker: AskerPort, _: float) -> None:
        assert asker.shard is not None
        heard = self._heard(asked["job"])
        heard.at = self._loop.time()
        heard.shards.add(asker.shard)
        self._begin(self._say_if_all(asked["job"], asker))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _say_if_all(self, job: str, asker: AskerPort) -> None:
        try:
            are_all = self._heard(job).has_moved or await self._is_over(job)
        except StoreUnavailable:
            are_all = False
        asker.answer({"are_all": are_all})

    async def _store_letters(self, letters: list[DeadLetter], asker: AskerPort) -> None:
        answer = {"stored": True}
        try:
            await self._letters.add(letters)
        except StoreUnavailable:
            answer = {}
        asker.answer(answer)

    def _heard(self, job: str) -> _Heard:
        if job not in self._jobs:
            if len(self._jobs) >= _MOST_JOBS:
                del self._jobs[next(iter(self._jobs))]
            self._jobs[job] = _Heard(self._loop.time())
        return self._jobs[job]


def _is_meant(job: Job, letter: DeadLetter) -> bool:
    """Whether the job may send the letter, or has taken it to be moved."""
    if letter.job == job.id:
        return True
    return letter.state is LetterState.NEW and letter.generation < job.options.max_replays


def _set(answer: "asyncio.Future[dict[str, Any] | None]", found: dict[str, Any] | None) -> None:
    if not answer.done():
        answer.set_result(found)
