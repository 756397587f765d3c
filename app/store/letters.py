"""Dead letters, as operators clear them away, carry them away and bring them back."""

from collections.abc import AsyncIterator, Callable
from typing import NamedTuple, cast

from redis.asyncio import Redis

from app.delivery.dead_letters import DeadLetter
from app.delivery.letter_room import OVERHEAD, Excess, Removal
from app.store import letter_lines, scripts
from app.store.connection import StoreUnavailable
from app.store.keeping import Store
from app.store.letter_lines import LineUnfit
from app.store.letter_search import (
    WHOLE,
    GroupPage,
    LetterFilter,
    LetterSearch,
    Standing,
    letter_id,
)
from app.store.remarks import Remarks

_REFUSALS = 20
_IMPORT = 100
_IMPORT_BYTES = 1024**2
# Removed in one call for want of room.
_MOST_AT_ONCE = 200
_BYTES_AT_ONCE = 4 * 1024**2


class Imported(NamedTuple):
    """What became of the lines of an import."""

    imported: int
    repeated: int
    refused: int
    # The first of them: number of the line, and why.
    refusals: list[tuple[int, str]]


class Letters:
    """Changes dead letters on the line; `search` reads them beside it."""

    def __init__(self, store: Store, redis: Redis, now_ns: Callable[[], int]) -> None:
        self._store = store
        self._keys = store.keys
        self.search = LetterSearch(redis, store.keys)
        self.remarks = Remarks(store, redis, now_ns)
        self._now_ns = now_ns
        self._room = store.letter_room
        # Whether letters came or went that a survey may have seen or not.
        self._is_disturbed = False

    async def groups(self, fingerprint: str | None, limit: int, *, start: int = 0) -> GroupPage:
        """The largest groups of letters that are alike, without the first `start` of them."""
        return await self.search.groups(fingerprint, limit, self._now_ns(), start=start)

    async def standing(self) -> Standing:
        """How many letters there are, and how fresh and how old they are."""
        return await self.search.standing(self._now_ns())

    async def purge(
        self, which: LetterFilter, progress: Callable[[int], None] = lambda removed: None
    ) -> int:
        """Remove what is meant for good, the oldest first, but nothing that dies from now on."""
        removed = 0
        newest = letter_id(self._now_ns())
        async for step, last in self.search.scan(which):
            if step:
                removed += await self._remove(step)
                progress(removed)
            if last >= newest:
                break
        return removed

    async def retire(self, age_s: float) -> int:
        """Remove what is older than this."""
        cutoff = letter_id(self._now_ns() - int(age_s * 1e9))
        removed = 0
        async for step, _ in self.search.scan(LetterFilter()):
            old = [letter for letter in step if letter.id < cutoff]
            if old:
                removed += await self._remove(old)
            if len(old) < len(step):
                break
        self._room.removed[Removal.AGE] += removed
        return removed

    async def make_room(self) -> None:
        """Remove the oldest of whatever there is too much of."""
        if not self._room.is_known:
            await self._survey()
        while (excess := self._room.excess()) is not None:
            which = LetterFilter(channel=excess.channel, subject=excess.subject)
            leaving = _as_many_as_needed(await self.search.oldest(which, _step(excess)), excess)
            if not leaving:
                # Something else changes the store.
                self._room.forget()
                return
            self._room.removed[excess.why] += await self._remove(leaving)

    async def _survey(self) -> None:
        """Look at all letters that are here, and account for them beside those that come."""
        await self._store.answered()
        self._room.begin()
        self._is_disturbed = False
        newest = letter_id(self._now_ns())
        async for step, last in self.search.scan(LetterFilter()):
            for letter in step:
                if letter.id < newest:
                    self._room.add(letter.channel, letter.subject, letter.size)
            if last >= newest:
                break
        self._room.is_known = not self._is_disturbed

    async def _remove(self, letters: list[DeadLetter]) -> int:
        try:
            reply = await self._store.run(
                lambda epoch: scripts.letters_remove(self._keys, epoch, letters)
            )
        except StoreUnavailable:
            # Nobody knows whether they are gone.
            self._room.forget()
            raise
        removed = cast("int", reply)
        self._is_disturbed = True
        if removed == len(letters):
            for letter in letters:
                self._room.free(letter.channel, letter.subject, letter.size)
        else:
            self._room.forget()
        return removed

    async def export(self, which: LetterFilter) -> AsyncIterator[bytes]:
        """What is meant as lines of JSON, without their ends, the oldest first."""
        async for step, _ in self.search.scan(which):
            for at in range(0, len(step), WHOLE):
                ids = [letter.id for letter in step[at : at + WHOLE]]
                for letter in await self.search.whole(ids):
                    if letter is not None:
                        yield letter_lines.write(letter)

    async def import_(self, lines: AsyncIterator[bytes]) -> Imported:
        """Keep the letters of these lines; one that is here already is left as it is."""
        read = repeated = refused = number = 0
        refusals: list[tuple[int, str]] = []
        letters: list[DeadLetter] = []
        async for line in lines:
            number += 1
            try:
                letters.append(letter_lines.read(line, self._now_ns()))
            except LineUnfit as error:
                refused += 1
                if len(refusals) < _REFUSALS:
                    refusals.append((number, str(error)))
            if len(letters) == _IMPORT or sum(letter.size for letter in letters) > _IMPORT_BYTES:
                read += len(letters)
                repeated += await self._add(letters)
                letters = []
        read += len(letters)
        repeated += await self._add(letters)
        return Imported(read - repeated, repeated, refused, refusals)

    async def _add(self, letters: list[DeadLetter]) -> int:
        """How many were here already."""
        if not letters:
            return 0
        buried = [(letter, None) for letter in letters]
        reply = await self._store.run(lambda epoch: scripts.bury(self._keys, epoch, buried))
        new = cast("int", reply)
        self._is_disturbed = True
        if new == len(letters):
            for letter in letters:
                self._room.add(letter.channel, letter.subject, letter.size)
        elif new:
            self._room.forget()
        return len(letters) - new


def _step(excess: Excess) -> int:
    """How many letters to look at, so that neither a step nor an answer is long."""
    needed = max(excess.letters, excess.bytes // max(excess.average, 1) + 1)
    return max(1, min(needed, _MOST_AT_ONCE, _BYTES_AT_ONCE // max(excess.average, 1)))


def _as_many_as_needed(oldest: list[DeadLetter], excess: Excess) -> list[DeadLetter]:
    leaving: list[DeadLetter] = []
    count, size = excess.letters, excess.bytes
    for letter in oldest:
        if count <= 0 and size <= 0:
            break
        leaving.append(letter)
        count -= 1
        size -= letter.size + OVERHEAD
    return leaving
