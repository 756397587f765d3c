"""Finding dead letters: by what they have in common, in bounded steps, never by looking at all."""

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from redis.asyncio import Redis
from redis.exceptions import RedisError

from app.delivery.dead_letters import DeadLetter, State
from app.store import records, scripts
from app.store.connection import StoreUnavailable
from app.store.keys import Keys

# Letters looked at in one step, and steps of one query; whole letters may be large.
_STEP = 200
_STEPS = 20
WHOLE = 10
# Of each group, so many are asked for their receivers.
_SAMPLES = 100
_NS_PER_MS = 1_000_000
_NS_PER_HOUR = 3_600_000_000_000
_HOURS = 24
_DAYS = 30
_LATEST = 10**19 - 1


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """Which dead letters are meant; all conditions hold together, none means all."""

    ids: tuple[str, ...] = ()
    channel: str | None = None
    # Key of the session.
    receiver: str | None = None
    # Of the receiver.
    subject: str | None = None
    code: str | None = None
    fingerprint: str | None = None
    state: State | None = None
    # When they died, in ms since 1970: from `since` to before `until`.
    since: int | None = None
    until: int | None = None

    def matches(self, letter: DeadLetter) -> bool:
        """Whether the letter is meant, but for the time."""
        pairs = (
            (self.channel, letter.channel),
            (self.receiver, letter.key),
            (self.subject, letter.subject),
            (self.code, letter.code),
            (self.fingerprint, letter.fingerprint),
            (self.state, letter.state),
        )
        return all(wanted is None or wanted == found for wanted, found in pairs)

    def range(self) -> tuple[str, str]:
        """The smallest id that is meant, and the largest."""
        first = 0 if self.since is None else self.since * _NS_PER_MS
        last = _LATEST if self.until is None else self.until * _NS_PER_MS - 1
        return letter_id(first), letter_id(last)


class LetterPage(NamedTuple):
    """A part of the letters, the latest first, without their events."""

    letters: list[DeadLetter]
    # Asks for the next part; None at the end. A part may have fewer letters than asked for.
    cursor: str | None


@dataclass(frozen=True, slots=True)
class LetterGroup:
    """Letters that are alike; times in ms since 1970."""

    sample: DeadLetter
    count: int
    # At least so many different ones.
    receivers: int
    first: int
    last: int
    # Deaths in each of the last 24 hours, the present one last.
    hours: tuple[int, ...]
    # And of the last 30 days, which end with the present hour.
    days: tuple[int, ...]


class GroupPage(NamedTuple):
    """A part of the groups, and how many letters there are in all groups."""

    groups: list[LetterGroup]
    total: int
    # How many groups to leave out for the next part; None at the end.
    following: int | None


class Standing(NamedTuple):
    """How many letters there are, how many died in the last hour, and when the first did, in ms."""

    total: int
    lately: int
    oldest: int | None


class LetterSearch:
    """Reads dead letters, on a connection of its own."""

    def __init__(self, redis: Redis, keys: Keys) -> None:
        self._redis = redis
        self._keys = keys
        self._page = redis.register_script(scripts.LETTERS_PAGE.source)
        self._counts = redis.register_script(scripts.LETTERS_COUNT.source)

    async def get(self, id: str) -> DeadLetter | None:
        """One letter, whole."""
        [letter] = await self.whole([id])
        return letter

    async def whole(self, ids: Iterable[str]) -> list[DeadLetter | None]:
        """These letters with their events."""
        found = await self._read(self._redis.hmget(self._keys.dead, list(ids)))
        return [None if record is None else records.unpack_letter(record) for record in found]

    async def query(self, which: LetterFilter, cursor: str | None, limit: int) -> LetterPage:
        """A page of letters; looks at a bounded number of them, so a page may be empty."""
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
        """What is meant, the oldest first, step by step; with the last id that was looked at."""
        async for step, last in self._steps(which, after, is_reverse=False):
            yield [letter for letter in step if which.matches(letter)], last

    async def oldest(self, which: LetterFilter, most: int) -> list[DeadLetter]:
        """The oldest letters of a channel, of a subject or of all, without their events."""
        index = await self._smallest(which)
        found = await self._letters(index, "-", "+", most, is_reverse=False)
        return [letter for _, letter in found if letter is not None]

    async def count(self, which: LetterFilter) -> int:
        """How many letters are meant."""
        indexes = self._indexes(which)
        if len(indexes) <= 1 and which.state is None and not which.ids:
            first, last = which.range()
            index = indexes[0] if indexes else self._keys.all_dead
            return int(await self._read(self._redis.zlexcount(index, f"[{first}", f"[{last}")))
        return sum([len(step) async for step, _ in self.scan(which)])

    async def groups(
        self, fingerprint: str | None, limit: int, now_ns: int, *, start: int = 0
    ) -> GroupPage:
        """The largest groups of letters that are alike, or the one of this fingerprint.

        Without the first `start` of them.
        """
        prints = await self._prints(fingerprint, start, limit + 1)
        groups = [await self._group(name, count, now_ns) for name, count in prints[:limit]]
        following = start + limit if len(prints) > limit else None
        there = [group for group in groups if group is not None]
        return GroupPage(there, await self.total(), following)

    async def _prints(
        self, fingerprint: str | None, start: int, limit: int
    ) -> list[tuple[str, int]]:
        prints = self._keys.prints
        if fingerprint is not None:
            count = await self._read(self._redis.zscore(prints, fingerprint))
            return [] if count is None else [(fingerprint, int(count))]
        largest = await self._read(
            self._redis.zrevrange(prints, start, start + limit - 1, withscores=True)
        )
        return [(name.decode(), int(count)) for name, count in largest]

    async def _group(self, fingerprint: str, count: int, now_ns: int) -> LetterGroup | None:
        index = self._keys.by_fingerprint(fingerprint)
        latest = await self._letters(index, "+", "-", _SAMPLES, is_reverse=True)
        letters = [letter for _, letter in latest if letter is not None]
        oldest = await self._read(self._redis.zrange(index, 0, 0))
        if not letters or not oldest:
            return None
        receivers = len({letter.key for letter in letters})
        first, last = int(oldest[0]), int(letters[0].id)
        sample = letters[0]
        hours, days = await self._over_time(index, now_ns)
        return LetterGroup(
            sample, count, receivers, first // _NS_PER_MS, last // _NS_PER_MS, hours, days
        )

    async def _over_time(self, index: str, now_ns: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """How many letters of an index there are of each of the last hours, and of days."""
        end = now_ns - now_ns % _NS_PER_HOUR + _NS_PER_HOUR
        hours = [end - n * _NS_PER_HOUR for n in range(_HOURS, -1, -1)]
        days = [end - n * _HOURS * _NS_PER_HOUR for n in range(_DAYS, -1, -1)]
        bounds = [letter_id(ns) for ns in (*hours, *days)]
        counts = await self._read(self._counts(keys=[index], args=bounds))
        # Between the last hour and the first day there is nothing.
        return tuple(counts[:_HOURS]), tuple(counts[_HOURS + 1 :])

    async def total(self) -> int:
        """How many letters there are."""
        return int(await self._read(self._redis.zcard(self._keys.all_dead)))

    async def standing(self, now_ns: int) -> Standing:
        """How it stands, at little cost."""
        index = self._keys.all_dead
        asked = self._redis.pipeline(transaction=False)
        # They are only noted here; the pipeline is asked for all of them at once.
        _ = asked.zcard(index)
        _ = asked.zlexcount(index, f"[{letter_id(now_ns - _NS_PER_HOUR)}", "+")
        _ = asked.zrange(index, 0, 0)
        total, lately, oldest = await self._read(asked.execute())
        return Standing(total, lately, int(oldest[0]) // _NS_PER_MS if oldest else None)

    # Steps through an index

    def _indexes(self, which: LetterFilter) -> list[str]:
        keys = self._keys
        pairs = (
            (keys.by_channel, which.channel),
            (keys.by_receiver, which.receiver),
            (keys.by_subject, which.subject),
            (keys.by_code, which.code),
            (keys.by_fingerprint, which.fingerprint),
        )
        return [index(wanted) for index, wanted in pairs if wanted is not None]

    async def _smallest(self, which: LetterFilter) -> str:
        indexes = self._indexes(which) or [self._keys.all_dead]
        if len(indexes) == 1:
            return indexes[0]
        sizes = [await self._read(self._redis.zcard(index)) for index in indexes]
        return min(zip(sizes, indexes, strict=True))[1]

    async def _steps(
        self, which: LetterFilter, after: str | None, *, is_reverse: bool
    ) -> AsyncIterator[tuple[list[DeadLetter], str]]:
        """Candidates beyond an id, without their events, and the last id of each step."""
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
        found = await self._read(self._page(keys=keys, args=[first, last, most, order]))
        return [
            (id.decode(), None if record is None else records.unpack_letter(record))
            for id, record in zip(found[::2], found[1::2], strict=True)
        ]

    async def _read(self, answer: Any) -> Any:  # noqa: ANN401 - whatever the command answers
        try:
            return await answer
        except (RedisError, OSError) as error:
            raise StoreUnavailable(f"the store cannot be read: {error}") from error


def letter_id(ns: int) -> str:
    """The id of a letter that died then."""
    return f"{min(max(ns, 0), _LATEST):019d}"
