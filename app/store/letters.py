"""Dead letters, as operators clear them away, carry them away and bring them back."""

from collections.abc import AsyncIterator, Callable
from typing import NamedTuple, cast

from redis.asyncio import Redis

from app.delivery.dead_letters import DeadLetter
from app.store import letter_lines, scripts
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

    async def retire(self, *, age_s: float, most: int) -> int:
        """Remove what is older than this, and the oldest of what is too much."""
        excess = await self.search.total() - most
        cutoff = letter_id(self._now_ns() - int(age_s * 1e9))
        removed = 0
        async for step, _ in self.search.scan(LetterFilter()):
            old = [
                letter
                for at, letter in enumerate(step, start=removed)
                if at < excess or letter.id < cutoff
            ]
            if old:
                removed += await self._remove(old)
            if len(old) < len(step):
                break
        return removed

    async def _remove(self, letters: list[DeadLetter]) -> int:
        removed = await self._store.run(
            lambda epoch: scripts.letters_remove(self._keys, epoch, letters)
        )
        return cast("int", removed)

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
        new = await self._store.run(lambda epoch: scripts.bury(self._keys, epoch, buried))
        return len(letters) - cast("int", new)
