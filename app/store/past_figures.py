"""Figures of the last day by minute and of a month by hour, and rankings: in memory and stored.

Each has a place that another one takes a day, or a month, later: so the store never has more. This
process has all of them, and the store what it last wrote; without the store, nothing is lost that
the memory has room for, which is as much.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from holdfast.delivery.basics.ranking import Ranking, RankingKind
from holdfast.store.format import scripts
from holdfast.store.format.figure_records import (
    FigureRow,
    UnknownRecord,
    begin_of,
    pack_ranking,
    pack_row,
    short,
    unpack_ranking,
    unpack_row,
)
from holdfast.store.links.reader import Reader
from holdfast.store.store import Store

MINUTE: Final = 1
HOUR: Final = 60
DAY: Final = 24 * HOUR
# How many fields one call writes: a few kilobytes.
_AT_ONCE = 50


class _Places(NamedTuple):
    """The fields of records of one length, in minutes, of which so many are kept."""

    prefix: str
    length: int
    kept: int

    def begin(self, at: int) -> int:
        return at - at % self.length

    def field(self, at: int) -> str:
        return f"{self.prefix}{at // self.length % self.kept}"

    def since(self, now: int) -> int:
        """Return the beginning of the oldest record that there may be."""
        return self.begin(now) - (self.kept - 1) * self.length


MINUTES: Final = _Places("m", MINUTE, 24 * 60)
HOURS: Final = _Places("h", HOUR, 30 * 24)
_ROWS: Final = (MINUTES, HOURS)


class Ranked(NamedTuple):
    """A ranking, and the time that it is of, in minutes since 1970."""

    since: int
    until: int
    ranking: Ranking


def ranking_places(kind: RankingKind) -> tuple[_Places, _Places]:
    """Return the places of a ranking by hour and by day."""
    return _Places(f"{kind}:h", HOUR, 48), _Places(f"{kind}:d", DAY, 31)


class PastFigures:
    """The figures that this server and those before it have noted."""

    def __init__(self, store: Store, reader: Reader) -> None:
        self._store = store
        self._reader = reader
        self._records: dict[str, bytes] = {}
        # When each record begins.
        self._begins: dict[str, int] = {}
        # The fields that the store may lack.
        self._unwritten: dict[str, None] = {}
        self._losses = 0

    async def load(self) -> None:
        """Read what earlier processes have noted. Raises `StoreUnavailable`."""
        found: dict[bytes, bytes] = await self._reader.ask("HGETALL", self._store.keys.figures)
        self._losses = self._store.losses
        for name, record in found.items():
            field = name.decode(errors="replace")
            try:
                begin = begin_of(record)
            except UnknownRecord:
                # Its place is free.
                continue
            self._records[field], self._begins[field] = record, begin

    def note(self, row: FigureRow, rankings: Mapping[RankingKind, Ranking]) -> None:
        """Add what happened within a minute, or within a part of it."""
        for places in _ROWS:
            at, field = places.begin(row.at), places.field(row.at)
            total = FigureRow(at, row.served_ms, row.counts, row.lengths, row.times)
            if self._begins.get(field) == at:
                total.add(unpack_row(self._records[field]))
            self._put(field, at, pack_row(total, places.length))
        for kind, ranking in rankings.items():
            # All names may have come too seldom.
            if ranking.counts or ranking.missing:
                self._rank(kind, row.at, ranking)

    def _rank(self, kind: RankingKind, minute: int, given: Ranking) -> None:
        ranking = given.renamed(short)
        for places in ranking_places(kind):
            at, field = places.begin(minute), places.field(minute)
            total = Ranking()
            if self._begins.get(field) == at:
                _, total = unpack_ranking(self._records[field])
            total.add(ranking.counts, ranking.missing)
            self._put(field, at, pack_ranking(at, total))

    def _put(self, field: str, at: int, record: bytes) -> None:
        self._records[field], self._begins[field] = record, at
        self._unwritten[field] = None

    async def write(self) -> None:
        """Write what the store lacks. Raises `StoreUnavailable`; then call it again later."""
        if self._losses != self._store.losses:
            self._losses = self._store.losses
            self._unwritten = dict.fromkeys(self._records)
        while first := [*self._unwritten][:_AT_ONCE]:
            records = {field: self._records[field] for field in first}
            keys = self._store.keys
            await self._store.run(scripts.save_fields(keys, keys.figures, records))
            for field, record in records.items():
                if self._records[field] is record:
                    self._unwritten.pop(field, None)

    def rows(self, places: _Places, since: int, until: int) -> Iterator[FigureRow]:
        """Yield the rows that begin within this time, in order."""
        for at in range(places.begin(since), until, places.length):
            field = places.field(at)
            if self._begins.get(field) == at:
                yield unpack_row(self._records[field])

    def ranked(self, kind: RankingKind, since: int, until: int, now: int) -> Ranked:
        """Return a ranking of this time, or of somewhat more: whole hours, or whole days."""
        by_hour, by_day = ranking_places(kind)
        places = by_hour if since >= by_hour.since(now) else by_day
        begin = max(places.begin(since), places.since(now))
        total, end = Ranking(), begin
        for at in range(begin, until, places.length):
            field = places.field(at)
            end = at + places.length
            if self._begins.get(field) == at:
                _, ranking = unpack_ranking(self._records[field])
                total.add(ranking.counts, ranking.missing)
        return Ranked(begin, end, total)
