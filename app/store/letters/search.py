"""Searches dead letters by index, in bounded steps."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from holdfast.delivery.basics.node import NS_PER_MS
from holdfast.delivery.letters.dead import DeadLetter
from holdfast.store.format import scripts
from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.letter_records import unpack_letter
from holdfast.store.format.operator_input import GroupedBy
from holdfast.store.letters.filter import LetterFilter, letter_id
from holdfast.store.letters.grouping import Kind, LetterKinds
from holdfast.store.links.reader import Reader

# How many letters one step examines, and how many steps one query takes. Whole letters may be
# large.
_STEP = 200
_STEPS = 20
WHOLE = 10
# How many letters of each group are sampled for receivers.
_SAMPLES = 100
_NS_PER_HOUR = 3_600_000_000_000
_HOURS = 24
_DAYS = 30
# Conditions with an index, and the name of that index. All indexes are sorted by time.
_INDEXES = {
    "channel": "channel",
    "receiver": "receiver",
    "subject": "subject",
    "code": "code",
    "fingerprint": "print",
}
_TIMES = {"since", "until"}


class LetterPage(NamedTuple):
    """A page of letters, newest first, without their events."""

    letters: list[DeadLetter]
    # The cursor of the next page, or None at the end. A page may be shorter than requested.
    cursor: str | None


@dataclass(frozen=True, slots=True)
class LetterGroup:
    """Letters with the same fingerprint, or of one kind. Times are in ms since 1970."""

    sample: DeadLetter
    count: int
    # A lower bound, from a sample.
    receivers: int
    first: int
    last: int
    # Letters per hour of the last 24 hours, the current one last.
    hours: tuple[int, ...]
    # Letters per day of the last 30 days, ending with the current hour.
    days: tuple[int, ...]
    # The pattern of their channels, if that is all that they have in common besides the code.
    pattern: str | None = None


class GroupPage(NamedTuple):
    """A page of groups, and the number of letters in all groups."""

    groups: list[LetterGroup]
    total: int
    # The position at which the next page starts, or None at the end.
    following: int | None


class LetterStatistics(NamedTuple):
    """The number of letters, letters of the last hour, and when the oldest died (ms)."""

    letters: int | None = None
    letters_lately: int | None = None
    letters_oldest: int | None = None


class LetterSearch:
    """Reads dead letters, on the reader."""

    def __init__(self, reader: Reader, keys: RedisKeys, now_ns: Callable[[], int]) -> None:
        self._reader = reader
        self._keys = keys
        self._now_ns = now_ns
        self._kinds = LetterKinds(reader, keys)

    async def get(self, id: str) -> DeadLetter | None:
        """Return one complete letter, or None if it is gone."""
        [letter] = await self.whole([id])
        return letter

    async def whole(self, ids: Iterable[str]) -> list[DeadLetter | None]:
        """Return these letters with their events, and None for each that is gone."""
        found = await self._reader.ask("HMGET", self._keys.dead, *ids)
        return [None if record is None else unpack_letter(record) for record in found]

    async def query(self, which: LetterFilter, cursor: str | None, limit: int) -> LetterPage:
        """Return a page of letters. It examines a bounded number, so a page may be empty."""
        found: list[DeadLetter] = []
        steps = 0
        async for step, last in self._steps(which, cursor, is_reverse=True):
            for letter in step:
                if which.matches(letter):
                    found.append(letter)
                    if len(found) == limit:
                        return LetterPage(found, letter.id)
            steps += 1
            if steps == _STEPS:
                return LetterPage(found, last)
        return LetterPage(found, None)

    async def scan(
        self, which: LetterFilter, after: str | None = None
    ) -> AsyncIterator[tuple[list[DeadLetter], str]]:
        """Yield matching letters in steps, oldest first, each with the last id examined."""
        async for step, last in self._steps(which, after, is_reverse=False):
            yield [letter for letter in step if which.matches(letter)], last

    async def oldest(self, which: LetterFilter, most: int) -> list[DeadLetter]:
        """Return the oldest letters of a channel, a subject or all, without their events."""
        index = await self._smallest(which)
        found = await self._letters(index, "-", "+", most, is_reverse=False)
        return [letter for _, letter in found if letter is not None]

    async def count(self, which: LetterFilter) -> int:
        """Return the number of matching letters."""
        conditions = {name for name, value in which if value not in (None, ())} - _TIMES
        if len(conditions) <= 1 and conditions <= _INDEXES.keys():
            first, last = which.range()
            index = await self._smallest(which)
            return int(await self._reader.ask("ZLEXCOUNT", index, f"[{first}", f"[{last}"))
        return sum([len(step) async for step, _ in self.scan(which)])

    async def groups(self, fingerprint: str | None, limit: int, *, start: int = 0) -> GroupPage:
        """Return the largest groups of letters, or the group with this fingerprint.

        Skips the first `start` groups.
        """
        prints = await self._prints(fingerprint, start, limit + 1)
        groups = [await self._group(name, count) for name, count in prints[:limit]]
        following = start + limit if len(prints) > limit else None
        there = [group for group in groups if group is not None]
        return GroupPage(there, await self.total(), following)

    async def kinds(self, by: GroupedBy, limit: int, *, start: int = 0) -> GroupPage:
        """Return the largest groups that have less in common than a fingerprint."""
        kinds, bounds = await self._kinds.all(by), self._bounds()
        shown = kinds[start : start + limit]
        for kind in shown:
            await self._kinds.complete(kind, bounds)
        following = start + limit if len(kinds) > start + limit else None
        return GroupPage([_group_of(kind) for kind in shown], await self.total(), following)

    async def by_channel(self) -> Mapping[str, int] | None:
        """Return how many letters each channel has; None if letters have too many causes."""
        return await self._kinds.by_channel()

    async def _prints(
        self, fingerprint: str | None, start: int, limit: int
    ) -> list[tuple[str, int]]:
        prints = self._keys.prints
        if fingerprint is not None:
            count = await self._reader.ask("ZSCORE", prints, fingerprint)
            return [] if count is None else [(fingerprint, int(count))]
        largest = await self._reader.ask(
            "ZREVRANGE", prints, start, start + limit - 1, "WITHSCORES"
        )
        return [(name.decode(), int(count)) for name, count in largest]

    async def _group(self, fingerprint: str, count: int) -> LetterGroup | None:
        index = self._keys.letters_by("print", fingerprint)
        latest = await self._letters(index, "+", "-", _SAMPLES, is_reverse=True)
        letters = [letter for _, letter in latest if letter is not None]
        oldest = await self._reader.ask("ZRANGE", index, 0, 0)
        if not letters or not oldest:
            return None
        receivers = len({letter.key for letter in letters})
        first, last = int(oldest[0]), int(letters[0].id)
        sample = letters[0]
        hours, days = await self._over_time(index)
        return LetterGroup(
            sample, count, receivers, first // NS_PER_MS, last // NS_PER_MS, hours, days
        )

    async def _over_time(self, index: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the number of letters of an index in each of the last hours and days."""
        return _divided(await self._reader.run(scripts.LETTERS_COUNT, [index], self._bounds()))

    def _bounds(self) -> list[str]:
        """Return the ids between which letters are counted: of hours, then of days."""
        now_ns = self._now_ns()
        end = now_ns - now_ns % _NS_PER_HOUR + _NS_PER_HOUR
        hours = [end - n * _NS_PER_HOUR for n in range(_HOURS, -1, -1)]
        days = [end - n * _HOURS * _NS_PER_HOUR for n in range(_DAYS, -1, -1)]
        return [letter_id(ns) for ns in (*hours, *days)]

    async def total(self) -> int:
        """Return the number of letters."""
        return int(await self._reader.ask("ZCARD", self._keys.all_dead))

    async def statistics(self) -> LetterStatistics:
        """Return the statistics of all letters. This is cheap."""
        index = self._keys.all_dead
        an_hour_ago = letter_id(self._now_ns() - _NS_PER_HOUR)
        total, lately, oldest = await self._reader.ask_all(
            ("ZCARD", index), ("ZLEXCOUNT", index, f"[{an_hour_ago}", "+"), ("ZRANGE", index, 0, 0)
        )
        return LetterStatistics(total, lately, int(oldest[0]) // NS_PER_MS if oldest else None)

    # Steps through an index

    async def _smallest(self, which: LetterFilter) -> str:
        wanted = {index: getattr(which, name) for name, index in _INDEXES.items()}
        by = self._keys.letters_by
        indexes = [by(index, value) for index, value in wanted.items() if value is not None]
        if len(indexes) <= 1:
            return (indexes or [self._keys.all_dead])[0]
        sizes = [await self._reader.ask("ZCARD", index) for index in indexes]
        return min(zip(sizes, indexes, strict=True))[1]

    async def _steps(
        self, which: LetterFilter, after: str | None, *, is_reverse: bool
    ) -> AsyncIterator[tuple[list[DeadLetter], str]]:
        """Yield candidates after an id, without their events, and the last id of each step."""
        if which.ids:
            async for step in self._named(which, after, is_reverse=is_reverse):
                yield step
            return
        index = await self._smallest(which)
        low, high = which.range()
        first, last = (f"[{high}", f"[{low}") if is_reverse else (f"[{low}", f"[{high}")
        if after is not None and (after <= high if is_reverse else after >= low):
            first = f"({after}"
        while True:
            found = await self._letters(index, first, last, _STEP, is_reverse=is_reverse)
            if not found:
                return
            yield [letter for _, letter in found if letter is not None], found[-1][0]
            first = f"({found[-1][0]}"

    async def _named(
        self, which: LetterFilter, after: str | None, *, is_reverse: bool
    ) -> AsyncIterator[tuple[list[DeadLetter], str]]:
        low, high = which.range()
        ids = sorted({id for id in which.ids if low <= id <= high}, reverse=is_reverse)
        if after is not None:
            ids = [id for id in ids if (id < after if is_reverse else id > after)]
        for at in range(0, len(ids), WHOLE):
            part = ids[at : at + WHOLE]
            yield [letter for letter in await self.whole(part) if letter is not None], part[-1]

    async def _letters(
        self, index: str, first: str, last: str, most: int, *, is_reverse: bool
    ) -> list[tuple[str, DeadLetter | None]]:
        order = "REV" if is_reverse else ""
        keys = [index, self._keys.dead]
        found = await self._reader.run(scripts.LETTERS_PAGE, keys, [first, last, most, order])
        return [
            (id.decode(), None if record is None else unpack_letter(record))
            for id, record in zip(found[::2], found[1::2], strict=True)
        ]


def _group_of(kind: Kind) -> LetterGroup:
    hours, days = _divided(kind.deaths)
    first, last = kind.first // NS_PER_MS, int(kind.sample.id) // NS_PER_MS
    receivers = len(kind.receivers)
    return LetterGroup(kind.sample, kind.count, receivers, first, last, hours, days, kind.channel)


def _divided(counts: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    # The range between the last hour and the first day is empty.
    return tuple(counts[:_HOURS]), tuple(counts[_HOURS + 1 :])
