"""The figures of the last day and month, and who publishes and gets most."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any

from pydantic import Field

from holdfast.delivery.basics.ranking import MOST, Ranking, RankingKind
from holdfast.store.format.figure_records import COUNTS, LENGTHS, FigureRow
from holdfast.store.format.operator_input import Count, Ms, values_of
from holdfast.store.past_figures import HOURS, MINUTES
from holdfast.web.admin.faults import illegal
from holdfast.web.admin.figure_keeper import FigureKeeper
from holdfast.web.admin.figure_readings import TIMES
from holdfast.web.admin.route import route

MS_PER_MINUTE = 60_000
_MS_PER_S = 1000
_DAY_MS = MINUTES.kept * MS_PER_MINUTE
_AT_ONCE = 50

_Buckets = Annotated[
    list[Count], Field(description="Times by bucket, as in `bounds`; the last has no bound.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRow:
    """The figures of a step. Counts are what happened within it, lengths the greatest ones."""

    time: Annotated[Ms, Field(description="When the step begins.")]
    served_ms: Annotated[Count, Field(description="For how long of it a server ran.")]
    published: Count
    accepted: Count
    acked: Count
    dead: Count
    expired: Count
    discarded: Count
    moved: Count
    redelivered: Count
    failed: Count
    errors: Annotated[Count, Field(description="Error replies.")]
    created: Annotated[Count, Field(description="Sessions that have begun.")]
    ended: Annotated[Count, Field(description="Sessions that have ended.")]
    requests: Count
    received_bytes: Count
    sent_bytes: Count
    starts: Annotated[Count, Field(description="Processes that have begun to serve.")]
    holds: Annotated[Count, Field(description="Holds of sessions and channels that have begun.")]
    replays: Annotated[Count, Field(description="Replays that have begun.")]
    waiting: Count
    in_flight: Count
    oldest_ms: Annotated[Count, Field(description="Age of the oldest entry.")]
    sessions: Count
    letters: Annotated[Count, Field(description="Dead letters in the store.")]
    hand_over_plain: _Buckets
    hand_over_acking: _Buckets
    hand_over_durable: _Buckets
    ack_acking: _Buckets
    ack_durable: _Buckets
    turn: _Buckets
    store_call: _Buckets


@dataclass(frozen=True, slots=True)
class Past:
    """Rows of equal steps, the earliest first. There is none where no server ran."""

    since: Ms
    until: Ms
    step_ms: Count
    bounds: Annotated[
        dict[str, list[float]],
        Field(description="The upper bounds of buckets in seconds, by the field of the rows."),
    ]
    rows: list[PastRow]


@dataclass(frozen=True, slots=True)
class TopName:
    """How often a name came."""

    name: str
    count: Annotated[Count, Field(description="It came so often at least.")]
    at_most: Annotated[Count, Field(description="It did not come more often than this.")]


@dataclass(frozen=True, slots=True)
class Top:
    """The names that came most often, the first ones first."""

    by: Annotated[RankingKind, values_of(RankingKind)]
    since: Annotated[Ms, Field(description="The first whole hour, or the first day, of these.")]
    until: Ms
    missing: Annotated[
        Count, Field(description="Names that are not listed came no more often than this.")
    ]
    items: list[TopName]


_Since = Annotated[
    Ms | None, Field(description="The beginning; without it, the last day. A month is kept.")
]
_Until = Annotated[Ms | None, Field(description="The end; without it, now.")]
_Step = Annotated[
    int,
    Field(
        ge=0,
        le=31 * _DAY_MS,
        description="The length of a step in ms: whole minutes, and whole hours if it begins more "
        "than a day ago. 0: a minute or an hour.",
    ),
]
_Shard = Annotated[
    Annotated[int, Field(ge=0)] | None,
    Field(description="Only what this shard has done; without it, the sum of all."),
]
_By = Annotated[
    RankingKind,
    values_of(RankingKind),
    Field(description="Messages by sender or channel, hand-overs, errors."),
]
_Limit = Annotated[int, Field(ge=1, le=MOST, description="Maximum number of names.")]


class PastResource:
    """Answers requests about the past.

    Args:
        number: The shard of this process.
    """

    def __init__(self, keeper: FigureKeeper, number: int) -> None:
        self._keeper = keeper
        self._number = number
        # One answer is made at a time: slices of a hundred at once are long together, and so many
        # rows need a gigabyte.
        self._making = asyncio.Lock()

    @route("GET", "/figures/past")
    async def past(
        self, since: _Since = None, until: _Until = None, step: _Step = 0, shard: _Shard = None
    ) -> Past:
        """Show the figures of the past, by minute for a day and by hour for a month."""
        first, end, now = self._minutes(since, until)
        places = MINUTES if first >= MINUTES.since(now) else HOURS
        minutes = step // MS_PER_MINUTE or places.length
        if step % MS_PER_MINUTE or minutes % places.length:
            raise illegal("step: no whole minutes, or, of more than a day ago, no whole hours")
        first = max(first, places.since(now))
        first -= first % minutes
        past = await self._keeper.read()
        rows = iter(()) if self._is_other(shard) else past.rows(places, first, end)
        async with self._making:
            found = [_view(row) async for row in _stepped(rows, minutes)]
        bounds = {name: [*seconds] for name, seconds in TIMES.items()}
        times = first * MS_PER_MINUTE, end * MS_PER_MINUTE, minutes * MS_PER_MINUTE
        return Past(*times, bounds, found)

    @route("GET", "/figures/top")
    async def top(
        self,
        by: _By,
        since: _Since = None,
        until: _Until = None,
        limit: _Limit = 20,
        shard: _Shard = None,
    ) -> Top:
        """Show who publishes most, on which channels, who gets most, and the commonest errors."""
        first, end, now = self._minutes(since, until)
        past = await self._keeper.read()
        async with self._making:
            found = past.ranked(by, first, end, now)
            await asyncio.sleep(0)
        ranking = Ranking() if self._is_other(shard) else found.ranking
        names = [TopName(name, n, n + ranking.missing) for name, n in ranking.first()[:limit]]
        times = found.since * MS_PER_MINUTE, min(found.until, end) * MS_PER_MINUTE
        return Top(by, *times, ranking.missing, names)

    def _is_other(self, shard: int | None) -> bool:
        return shard is not None and shard != self._number

    def _minutes(self, since: int | None, until: int | None) -> tuple[int, int, int]:
        """Return the first minute, the one behind the last one, and the present one."""
        now_ms = round(self._keeper.wall_s() * _MS_PER_S)
        end_ms = now_ms if until is None else min(until, now_ms)
        begin_ms = end_ms - _DAY_MS + MS_PER_MINUTE if since is None else since
        now = now_ms // MS_PER_MINUTE
        return begin_ms // MS_PER_MINUTE, -(-end_ms // MS_PER_MINUTE), now


async def _stepped(rows: Iterator[FigureRow], minutes: int) -> AsyncIterator[FigureRow]:
    """Yield the sums of rows by step. Other work runs between them."""
    step: FigureRow | None = None
    while part := [*islice(rows, _AT_ONCE)]:
        for row in part:
            at = row.at - row.at % minutes
            if step is not None and step.at == at:
                step.add(row)
                continue
            if step is not None:
                yield step
            step = row
            step.at = at
        await asyncio.sleep(0)
    if step is not None:
        yield step


def _view(row: FigureRow) -> PastRow:
    # A release that knew fewer figures has left none of the others.
    empty = {name: [0] * (len(bounds) + 1) for name, bounds in TIMES.items()}
    known: dict[str, Any] = {
        **dict.fromkeys((*COUNTS, *LENGTHS), 0),
        **empty,
        **dict(zip(COUNTS, row.counts, strict=False)),
        **dict(zip(LENGTHS, row.lengths, strict=False)),
        **dict(zip(TIMES, row.times, strict=False)),
    }
    return PastRow(time=row.at * MS_PER_MINUTE, served_ms=row.served_ms, **known)
