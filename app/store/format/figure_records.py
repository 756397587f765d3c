"""The form of past figures in the store: short rows of numbers, and rankings of names.

A number takes one byte for each seven bits, so the many zeros of a quiet minute take one each.
Larger numbers than the limits are stored as the limits, so that a row has a greatest length.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import add
from typing import Final
from zlib import crc32

from holdfast.delivery.basics.ranking import Ranking

# The first byte of a record, whose last bytes are a checksum; later releases may add numbers to the
# lists of a row.
VERSION: Final = 1
# The numbers of a row in their order, of which the first ones are counts: add others behind these.
COUNTS: Final = (
    *("published", "accepted", "acked", "dead", "expired", "discarded", "moved"),
    *("redelivered", "failed", "errors", "created", "ended", "requests"),
    *("received_bytes", "sent_bytes", "starts", "holds", "replays"),
)
LENGTHS: Final = ("waiting", "in_flight", "oldest_ms", "sessions", "letters")
_SUM: Final = 4
# The largest numbers of a minute and of an hour: 4 and 5 bytes of a bucket, 5 and 6 of others.
_MOST_TIMES: Final = {1: (1 << 28) - 1, 60: (1 << 35) - 1}
_MOST: Final = {1: (1 << 35) - 1, 60: (1 << 42) - 1}
# The longest names, in bytes, and the longest ranking: with what the store adds, 2 KiB.
_LONGEST_NAME: Final = 100
_LONGEST_RANKING: Final = 2000
_DIGITS: Final = 8


class UnknownRecord(Exception):
    """A later release wrote this record, or it is damaged."""


@dataclass(slots=True)
class FigureRow:
    """What happened within some minutes."""

    # When they began, in minutes since 1970, and for how long of them servers ran, in ms.
    at: int
    served_ms: int
    # How much counters rose, the greatest lengths, and the times by bucket of each histogram.
    counts: list[int]
    lengths: list[int]
    times: list[list[int]]

    def add(self, other: "FigureRow") -> None:
        """Add what happened later, or in another part of the same time."""
        self.served_ms += other.served_ms
        self.counts = _added(self.counts, other.counts)
        self.lengths = [max(pair) for pair in _pairs(self.lengths, other.lengths)]
        self._add_times(other.times)

    def add_shard(self, other: "FigureRow") -> None:
        """Add what happened at the same time in another shard."""
        self.served_ms = max(self.served_ms, other.served_ms)
        self.counts = _added(self.counts, other.counts)
        self.lengths = _added(self.lengths, other.lengths)
        self._add_times(other.times)

    def _add_times(self, times: list[list[int]]) -> None:
        longer, shorter = sorted((self.times, times), key=len, reverse=True)
        own = [_added(*pair) for pair in zip(longer, shorter, strict=False)]
        self.times = own + longer[len(own) :]


def _pairs(one: Sequence[int], other: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Return what two lists have at each place, of which one may be shorter."""
    most = max(len(one), len(other))
    ends = ([*each, *[0] * (most - len(each))] for each in (one, other))
    return zip(*ends, strict=True)


def _added(one: Sequence[int], other: Sequence[int]) -> list[int]:
    if len(one) == len(other):
        return [*map(add, one, other)]
    return [*map(sum, _pairs(one, other))]


def pack_row(row: FigureRow, minutes: int) -> bytes:
    """Return the record of a row of so many minutes: 1 or 60."""
    most, most_times = _MOST[minutes], _MOST_TIMES[minutes]
    times = [[min(each, most_times) for each in bucket] for bucket in row.times]
    counts = [min(each, most) for each in row.counts]
    lengths = [min(each, most) for each in row.lengths]
    numbers = [row.at, row.served_ms, len(counts), *counts, len(lengths), *lengths]
    numbers += chain.from_iterable((len(each), *each) for each in times)
    return _with_sum(_packed(numbers))


def begin_of(record: bytes) -> int:
    """Return the minute with which a row or a ranking begins. Raises `UnknownRecord`."""
    return next(_unpacked(_checked(record)))


def unpack_row(record: bytes) -> FigureRow:
    """Return the row of a record. Raises `UnknownRecord`."""
    numbers = _unpacked(_checked(record))
    at, served_ms = next(numbers), next(numbers)
    counts, lengths, *times = _lists(numbers)
    return FigureRow(at, served_ms, counts, lengths, times)


def _lists(numbers: Iterator[int]) -> Iterator[list[int]]:
    for count in numbers:
        yield [next(numbers) for _ in range(count)]


def pack_ranking(at: int, ranking: Ranking) -> bytes:
    """Return the record of a ranking that begins at this minute, shorter if names are long."""
    most = len(ranking.counts)
    while True:
        shorter = Ranking(ranking.counts, ranking.missing)
        shorter.shorten(most)
        names = [name.encode() for name in shorter.counts]
        limit = _MOST[60]
        numbers = [at, min(shorter.missing, limit), len(names)]
        for name, count in zip(names, shorter.counts.values(), strict=True):
            numbers += (min(count, limit), len(name))
        record = _with_sum(_packed(numbers) + b"".join(names))
        if len(record) <= _LONGEST_RANKING:
            return record
        most = len(names) * _LONGEST_RANKING // len(record) - 1


def unpack_ranking(record: bytes) -> tuple[int, Ranking]:
    """Return when it begins, and the ranking. Raises `UnknownRecord`."""
    whole = _checked(record)
    numbers = _unpacked(whole)
    at, missing, length = next(numbers), next(numbers), next(numbers)
    pairs = [(next(numbers), next(numbers)) for _ in range(length)]
    names = whole[len(whole) - sum(size for _, size in pairs) :]
    counts: dict[str, int] = {}
    for count, size in pairs:
        counts[names[:size].decode()] = count
        names = names[size:]
    return at, Ranking(counts, missing)


def short(name: str) -> str:
    """Return a name as rankings have it: a long one ends with digits that tell it from others."""
    written = name.encode(errors="replace")
    if len(written) <= _LONGEST_NAME:
        return written.decode()
    digits = hashlib.blake2b(written, digest_size=_DIGITS // 2).hexdigest()
    begin = written[: _LONGEST_NAME - _DIGITS - 3].decode(errors="ignore")
    return f"{begin}…{digits}"


def _packed(numbers: Iterable[int]) -> bytes:
    record = bytearray((VERSION,))
    for number in numbers:
        rest = number
        while rest > 0x7F:
            record.append(rest & 0x7F | 0x80)
            rest >>= 7
        record.append(rest)
    return bytes(record)


def _with_sum(record: bytes) -> bytes:
    return record + crc32(record).to_bytes(_SUM)


def _checked(record: bytes) -> bytes:
    """Return the record without its checksum. Raises `UnknownRecord`."""
    whole, checksum = record[:-_SUM], record[-_SUM:]
    if whole[:1] != bytes((VERSION,)) or crc32(whole).to_bytes(_SUM) != checksum:
        raise UnknownRecord
    return whole


def _unpacked(record: bytes) -> Iterator[int]:
    """Yield the numbers of a record."""
    number = shift = 0
    for byte in record[1:]:
        if byte <= 0x7F:
            yield number | byte << shift
            number = shift = 0
        else:
            number |= (byte & 0x7F) << shift
            shift += 7
