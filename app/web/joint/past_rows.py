"""Joins the figures of the past, and rankings, of all shards."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final, TypeVar

from holdfast.delivery.basics.ranking import Ranking
from holdfast.store.format.figure_records import COUNTS, LENGTHS, FigureRow
from holdfast.web.admin.figure_readings import TIMES
from holdfast.web.admin.handlers import Ask
from holdfast.web.joint.asking import Json, Shards
from holdfast.web.joint.hearing import Heard, heard

Item = TypeVar("Item")

# How many rows are joined before other work follows: about a millisecond.
_AT_ONCE: Final = 20
_OLDEST: Final = LENGTHS.index("oldest_ms")


class PastRule:
    """Joins the rows of all shards, in slices: there are thousands, and clients wait meanwhile.

    One answer is made at a time: it has many megabytes, and slices of many are long together.
    """

    async def answer(self, shards: Shards, ask: Ask) -> Json:
        """Return the joint answer."""
        async with shards.making_large:
            found = heard(await shards.ask_all(ask))
            return found.whole(await past(found.bodies))


async def past(found: Sequence[Json]) -> Json:
    """Return the rows of all shards as one for each step."""
    rows: dict[int, FigureRow] = {}
    for each in found:
        async for item in _slowly(each["rows"]):
            row = _row(item)
            if (joint := rows.get(row.at)) is None:
                rows[row.at] = row
            else:
                _add(joint, row)
    return {
        **found[0],
        "since": min(each["since"] for each in found),
        "until": max(each["until"] for each in found),
        "rows": [_item(rows[at]) async for at in _slowly(sorted(rows))],
    }


async def _slowly(items: Sequence[Item]) -> AsyncIterator[Item]:
    """Yield items; other work runs between some of them."""
    for number, item in enumerate(items):
        if number % _AT_ONCE == 0:
            await asyncio.sleep(0)
        yield item


def _add(joint: FigureRow, row: FigureRow) -> None:
    """Add the row of another shard. The oldest entry of all is the oldest one of any."""
    oldest = max(joint.lengths[_OLDEST], row.lengths[_OLDEST])
    joint.add_shard(row)
    joint.lengths[_OLDEST] = oldest


def _row(item: Json) -> FigureRow:
    counts, lengths, times = ([item[name] for name in names] for names in (COUNTS, LENGTHS, TIMES))
    return FigureRow(item["time"], item["served_ms"], counts, lengths, times)


def _item(row: FigureRow) -> Json:
    return {
        "time": row.at,
        "served_ms": row.served_ms,
        **dict(zip(COUNTS, row.counts, strict=True)),
        **dict(zip(LENGTHS, row.lengths, strict=True)),
        **dict(zip(TIMES, row.times, strict=True)),
    }


def top(found: Heard, limit: int) -> Json:
    """Return the ranking of all shards: each count may lack what their counts lack together."""
    bodies, total = found.bodies, Ranking()
    for each in bodies:
        total.add({item["name"]: item["count"] for item in each["items"]}, each["missing"])
    return {
        **bodies[0],
        "since": min(each["since"] for each in bodies),
        "until": max(each["until"] for each in bodies),
        "missing": total.missing,
        "items": [
            {"name": name, "count": count, "at_most": count + total.missing}
            for name, count in total.first()[:limit]
        ],
    }
