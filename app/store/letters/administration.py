"""Changes to dead letters: purge, quota, export and import."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Annotated, cast

from pydantic import Field

from holdfast.delivery.basics.ignoring import ignore
from holdfast.delivery.letters.dead import DeadLetter
from holdfast.delivery.messages.letter_quota import OVERHEAD, Excess, Removal
from holdfast.store.format import scripts
from holdfast.store.format.operator_input import Count
from holdfast.store.letters.filter import ALL_LETTERS, LetterFilter, letter_id
from holdfast.store.letters.search import WHOLE, LetterSearch
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.links.reader import Reader
from holdfast.store.remarks import Remarks
from holdfast.store.store import Store

_REFUSALS = 20
_IMPORT = 100
_IMPORT_BYTES = 1024**2
# How many letters one call removes to enforce the quota.
_MOST_AT_ONCE = 200
_BYTES_AT_ONCE = 4 * 1024**2


@dataclass(frozen=True, slots=True)
class Refusal:
    """A line that was not imported, and why."""

    line: Annotated[int, Field(ge=1)]
    text: str


@dataclass(frozen=True, slots=True)
class Import:
    """The result of an import."""

    imported: Count
    repeated: Annotated[int, Field(ge=0, description="Letters that were there already.")]
    refused: Count
    refusals: Annotated[list[Refusal], Field(description="The first 20.")]


class Letters:
    """Changes dead letters on the store link; `search` reads on the reader."""

    def __init__(self, store: Store, reader: Reader, now_ns: Callable[[], int]) -> None:
        self._store = store
        self._keys = store.keys
        self.search = LetterSearch(reader, store.keys, now_ns)
        self.remarks = Remarks(store, reader, now_ns)
        self._now_ns = now_ns
        self._room = store.letter_quota
        # Whether letters were added or removed during a survey.
        self._is_disturbed = False

    async def purge(self, which: LetterFilter, progress: Callable[[int], None] = ignore) -> int:
        """Remove matching letters permanently, oldest first. Later deaths are not included."""
        removed = 0
        newest = letter_id(self._now_ns())
        async for step, last in self.search.scan(which):
            if step:
                removed += await self.remove(step)
                progress(removed)
            if last >= newest:
                break
        return removed

    async def retire(self, age_s: float) -> int:
        """Remove letters older than this."""
        cutoff = letter_id(self._now_ns() - int(age_s * 1e9))
        removed = 0
        async for step, _ in self.search.scan(ALL_LETTERS):
            old = [letter for letter in step if letter.id < cutoff]
            if old:
                removed += await self.remove(old)
            if len(old) < len(step):
                break
        self._room.removed[Removal.AGE] += removed
        return removed

    async def make_room(self) -> None:
        """Remove the oldest letters of each group that exceeds its quota."""
        if not self._room.is_known:
            await self._survey()
        while (excess := self._room.excess()) is not None:
            which = LetterFilter(channel=excess.channel, subject=excess.subject)
            leaving = _as_many_as_needed(await self.search.oldest(which, _step(excess)), excess)
            if not leaving:
                # Another client is changing the store.
                self._room.forget()
                return
            self._room.removed[excess.why] += await self.remove(leaving)

    async def _survey(self) -> None:
        """Count all letters in the store, including letters that arrive during the count."""
        await self._store.answered()
        self._room.begin()
        self._is_disturbed = False
        newest = letter_id(self._now_ns())
        async for step, last in self.search.scan(ALL_LETTERS):
            for letter in step:
                if letter.id < newest:
                    self._room.add(letter.channel, letter.subject, letter.size)
            if last >= newest:
                break
        self._room.is_known = not self._is_disturbed

    async def remove(self, letters: list[DeadLetter]) -> int:
        """Remove letters. Returns how many were there; raises `StoreUnavailable`."""
        try:
            reply = await self._store.run(scripts.letters_remove(self._keys, letters))
        except StoreUnavailable:
            # It is unknown whether they were removed.
            self._room.forget()
            raise
        removed = _counted(reply)
        self._is_disturbed = True
        if removed is None:
            self._room.forget()
            return len(letters)
        if removed == len(letters):
            for letter in letters:
                self._room.free(letter.channel, letter.subject, letter.size)
        else:
            self._room.forget()
        return removed

    async def export(self, which: LetterFilter) -> AsyncIterator[bytes]:
        """Yield matching letters as lines of JSON without line breaks, oldest first."""
        # Few servers export or import: a start need not wait for it.
        from holdfast.store.letters import lines as lines_of_json

        async for step, _ in self.search.scan(which):
            for at in range(0, len(step), WHOLE):
                ids = [letter.id for letter in step[at : at + WHOLE]]
                for letter in await self.search.whole(ids):
                    if letter is not None:
                        yield lines_of_json.write(letter)

    async def import_(self, lines: AsyncIterator[bytes]) -> Import:
        """Store the letters in these lines. Existing letters are not changed."""
        from holdfast.store.letters import lines as lines_of_json

        read = repeated = refused = number = 0
        refusals: list[Refusal] = []
        letters: list[DeadLetter] = []
        async for line in lines:
            number += 1
            try:
                letters.append(lines_of_json.read(line, self._now_ns()))
            except lines_of_json.LineUnfit as error:
                refused += 1
                if len(refusals) < _REFUSALS:
                    refusals.append(Refusal(number, str(error)))
            if len(letters) == _IMPORT or sum(letter.size for letter in letters) > _IMPORT_BYTES:
                read += len(letters)
                repeated += await self.add(letters)
                letters = []
        read += len(letters)
        repeated += await self.add(letters)
        return Import(read - repeated, repeated, refused, refusals)

    async def add(self, letters: list[DeadLetter]) -> int:
        """Add letters. Returns how many existed already; raises `StoreUnavailable`."""
        if not letters:
            return 0
        buried = [(letter, None) for letter in letters]
        reply = await self._store.run(
            scripts.dead_letter(self._keys, buried, self._store.layout.form)
        )
        new = _counted(reply)
        self._is_disturbed = True
        if new is None:
            self._room.forget()
            return 0
        if new == len(letters):
            for letter in letters:
                self._room.add(letter.channel, letter.subject, letter.size)
        elif new:
            self._room.forget()
        return len(letters) - new


def _counted(reply: object) -> int | None:
    """Return how many letters the call has changed; None if the answer to it was lost."""
    return cast("int", reply[0]) if isinstance(reply, list) else None


def _step(excess: Excess) -> int:
    """Return how many letters to examine, so that neither the step nor the answer takes long."""
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
