"""Moves dead letters to the shard of the session that a replay sends them to.

That shard replays them, with all that it has for the session, in their order. A letter that moves
is first taken for the job, so that no other replay sends it; then the other shard stores it as a
new one of the job, once however often it is asked; then it is removed here. So one of them has it,
whichever process is killed.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast

import orjson

from holdfast.delivery.basics.json_text import to_json
from holdfast.delivery.letters.dead import DeadLetter, LetterState
from holdfast.delivery.messages.shard_call import ShardCall
from holdfast.delivery.ports.homes import HomesPort
from holdfast.store.format import records, scripts
from holdfast.store.format.scripts import Take
from holdfast.store.letters.administration import Letters
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.replays.job_records import Job, is_taken
from holdfast.store.store import Store

# What the operation is called.
REPLAYS: Final = "replays"
# How many dead letters, and roughly how many bytes, one of them has.
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
        homes: HomesPort,
        is_away: Callable[[int], bool],
        is_over: IsOver,
    ) -> None:
        self._store = store
        self._letters = letters
        self._whereabouts = whereabouts
        self._homes = homes
        self._is_away, self._is_over = is_away, is_over
        self._loop = asyncio.get_running_loop()
        self._jobs: dict[str, _Heard] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def look(self, receiver: str | None) -> FarSession | None:
        """Return a session of another shard. Raises `StoreUnavailable` if that does not answer."""
        if receiver is None or (shard := self._whereabouts.shard_of(receiver)) is None:
            return None
        found = await self._ask(shard, to_json({"session": receiver}))
        if found is None or "is_there" not in found:
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
        found = [records.pack_letter(each, {}) for each in taken]
        head = {"job": job.id, "sizes": [len(each) for each in found]}
        data = to_json(head) + b"\n" + b"".join(found)
        while (answer := await self._ask(shard, data)) is None or "stored" not in answer:
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
        call = scripts.replay_take(self._store.keys, job.id, takes)
        results = cast("list[bytes]", await self._store.run(call, timeout_s=None))
        more = [each for each, how in zip(new, results, strict=True) if how == b"taken"]
        job.moved += len(more)
        return taken + [each._replace(job=job.id) for each in more]

    async def _wait_for_others(self, job: Job, pause: Pause) -> None:
        others = self._homes.others
        untold = {*others}
        heard = self._heard(job.id)
        heard.at = self._loop.time()
        while True:
            for shard in [each for each in untold if self._homes.may_send(each)]:
                untold.discard(shard)
                self._tell(job, shard, untold)
            awaited = (each for each in others if each in untold or each not in heard.shards)
            is_late = self._loop.time() - heard.at >= _PATIENCE_S
            if is_late or all(self._is_away(each) for each in awaited):
                return
            await pause(_LOOK_S)

    def _tell(self, job: Job, shard: int, untold: set[int]) -> None:
        """Tell a shard that it has all letters from here, or let it be told again.

        It answers whether this one has all of its letters: it may have said so to a process before.
        """

        def answered(answer: bytes | None) -> None:
            if answer is None:
                untold.add(shard)
            elif orjson.loads(answer).get("are_all"):
                self._heard(job.id).shards.add(shard)

        data = to_json({"job": job.id, "are_all": True})
        self._homes.send(shard, REPLAYS, data, answered)

    async def _ask(self, shard: int, data: bytes) -> dict[str, Any] | None:
        """Return what the other shard answers; None if it does not."""
        if not self._homes.may_send(shard):
            return None
        answer: asyncio.Future[bytes | None] = self._loop.create_future()
        self._homes.send(shard, REPLAYS, data, lambda found: _set(answer, found))
        found = await answer
        return None if found is None else cast("dict[str, Any]", orjson.loads(found))

    # What others ask

    def carry_out(self, call: ShardCall, now: float) -> None:
        """Do what another shard asks, and answer."""
        line, _, stored = call.data.partition(b"\n")
        head = orjson.loads(line)
        if "session" in head:
            self._say(call, head["session"])
            return
        heard = self._heard(head["job"])
        heard.at = self._loop.time()
        if "sizes" in head:
            self._begin(self._store_letters(call, head["sizes"], stored))
        else:
            heard.shards.add(call.sender)
            self._begin(self._say_if_all(call, head["job"]))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _say(self, call: ShardCall, key: str) -> None:
        is_there = self._whereabouts.is_durable(key) is not None
        is_away = self._whereabouts.is_away(key)
        self._homes.answer(call, to_json({"is_there": is_there, "is_away": is_away}))

    async def _say_if_all(self, call: ShardCall, job: str) -> None:
        try:
            are_all = self._heard(job).has_moved or await self._is_over(job)
        except StoreUnavailable:
            are_all = False
        self._homes.answer(call, to_json({"are_all": are_all}))

    async def _store_letters(self, call: ShardCall, sizes: Sequence[int], stored: bytes) -> None:
        answer, at = {"stored": True}, 0
        found = []
        for size in sizes:
            found.append(records.unpack_letter(stored[at : at + size]))
            at += size
        try:
            await self._letters.add(found)
        except StoreUnavailable:
            answer = {}
        self._homes.answer(call, to_json(answer))

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


def _set(answer: "asyncio.Future[bytes | None]", found: bytes | None) -> None:
    if not answer.done():
        answer.set_result(found)
