"""Groups dead letters by less than their cause: by the code alone, or with similar channels."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.delivery.basics.channels import REPLIES
from holdfast.delivery.letters.dead import DeadLetter, pattern_of
from holdfast.store.format import scripts
from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.letter_records import unpack_letter
from holdfast.store.format.operator_input import GroupedBy
from holdfast.store.links.reader import Reader, evaluation

# How many causes one request looks at, the largest first, and how many at once.
_MOST = 20_000
_AT_ONCE = 200
# How many of the latest letters of a cause are looked at for their receivers, if it is the largest.
_SAMPLES = 100
_ANY_CHANNEL = "/**"


@dataclass(slots=True)
class Kind:
    """Letters with one code, and with channels of one pattern."""

    channel: str
    code: str
    # The latest letter.
    sample: DeadLetter
    count: int = 0
    # The names of their causes, the largest first; and receivers that are known.
    prints: list[str] = field(default_factory=list)
    receivers: set[str] = field(default_factory=set)
    first: int = 0
    # As of a `LetterGroup`, one after the other.
    deaths: list[int] = field(default_factory=list)


class LetterKinds:
    """Reads the kinds of dead letters, on the reader."""

    def __init__(self, reader: Reader, keys: RedisKeys) -> None:
        self._reader = reader
        self._keys = keys
        # The channels of causes that were counted last, by their names.
        self._channels: Mapping[bytes, str] = {}

    async def by_channel(self) -> Mapping[str, int] | None:
        """Return how many letters each channel has, without replies, whose channels are many.

        None if there are more causes than one request looks at.
        """
        found = await self._reader.ask("ZREVRANGE", self._keys.prints, 0, _MOST, "WITHSCORES")
        if len(found) > _MOST:
            return None
        known = self._channels
        new = await self._channels_of([name for name, _ in found if name not in known])
        channels: dict[bytes, str] = {}
        letters = Counter[str]()
        for part in _parts(found):
            for name, count in part:
                # A cause stays one of the same channel.
                channel = known.get(name) or new.get(name)
                if channel is None:
                    continue
                channels[name] = channel
                if not channel.startswith(REPLIES):
                    letters[channel] += int(count)
            await asyncio.sleep(0)
        self._channels = channels
        return letters

    async def _channels_of(self, names: Sequence[bytes]) -> dict[bytes, str]:
        """Return the channels of causes, except of those that have no letter any more."""
        found: dict[bytes, str] = {}
        for part in _parts(names):
            pages = await self._latest([name.decode() for name in part], 1)
            found |= {name: page[0].channel for name, page in zip(part, pages, strict=True) if page}
        return found

    async def all(self, by: GroupedBy) -> list[Kind]:
        """Return all kinds, the largest first."""
        kinds: dict[tuple[str, str], Kind] = {}
        async for name, count, letter in self._causes():
            channel = _ANY_CHANNEL if by is GroupedBy.CODE else pattern_of(letter.channel)
            place = channel, letter.code
            kind = kinds.setdefault(place, Kind(*place, letter))
            kind.sample = max(kind.sample, letter, key=lambda each: each.id)
            kind.count += count
            kind.prints.append(name)
            kind.receivers.add(letter.key)
        return sorted(kinds.values(), key=lambda each: (-each.count, each.code, each.channel))

    async def _causes(self) -> AsyncIterator[tuple[str, int, DeadLetter]]:
        """Yield the causes, the largest first: name, number of letters, and the latest one."""
        found = await self._reader.ask("ZREVRANGE", self._keys.prints, 0, _MOST - 1, "WITHSCORES")
        for part in _parts(found):
            names = [name.decode() for name, _ in part]
            pages = await self._latest(names, 1)
            for name, (_, count), page in zip(names, part, pages, strict=True):
                for letter in page:
                    yield name, int(count), letter

    async def _latest(self, names: Sequence[str], most: int) -> list[list[DeadLetter]]:
        """Return the latest letters of each of these causes."""
        pages = await self._reader.ask_all(
            *(
                evaluation(scripts.LETTERS_PAGE, [index, self._keys.dead], ["+", "-", most, "REV"])
                for index in self._indexes(names)
            )
        )
        return [[unpack_letter(each) for each in page[1::2] if each] for page in pages]

    async def complete(self, kind: Kind, bounds: Sequence[str]) -> None:
        """Find out when the letters of a kind died, and more of their receivers.

        Args:
            bounds: The ids between which letters are counted.
        """
        [largest] = await self._latest(kind.prints[:1], _SAMPLES)
        kind.receivers.update(letter.key for letter in largest)
        firsts: list[int] = []
        kind.deaths = [0] * (len(bounds) - 1)
        for start in range(0, len(kind.prints), _AT_ONCE):
            indexes = [*self._indexes(kind.prints[start : start + _AT_ONCE])]
            answers = await self._reader.ask_all(
                *(evaluation(scripts.LETTERS_COUNT, [index], bounds) for index in indexes),
                *(("ZRANGE", index, 0, 0) for index in indexes),
            )
            for counts in answers[: len(indexes)]:
                kind.deaths = [sum(each) for each in zip(kind.deaths, counts, strict=True)]
            firsts += [int(each[0]) for each in answers[len(indexes) :] if each]
        kind.first = min(firsts, default=int(kind.sample.id))

    def _indexes(self, names: Iterable[str]) -> Iterator[str]:
        return (self._keys.letters_by("print", name) for name in names)


def _parts(found: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(found), _AT_ONCE):
        yield found[start : start + _AT_ONCE]
