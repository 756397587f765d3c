"""Times from publish to hand-over, from there to the ack, and of both together, as histograms.

The histogram of a channel has a row for each time that copies took, and their number. Times are
rounded so that they stay few; readers add up rows with the same time.
"""

import math
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.journal.schema import NS_PER_US, Kind
from holdfast.pipeline import schemas
from holdfast.pipeline.arrow import arrow_of
from holdfast.pipeline.lake import OPEN
from holdfast.pipeline.rows import summed, with_columns
from holdfast.pipeline.schemas import ANSWER, CRITICAL, DELIVERY

if TYPE_CHECKING:
    from numpy.typing import NDArray

LATENCY = arrow_of(schemas.LATENCY)
# Each bucket ends at this multiple of where it begins, so its middle is within one percent of all
# times in it.
_GROWTH = 1.02
_US_PER_HOUR = 3_600_000_000
_BY = tuple(LATENCY.names[:-1])


def latencies(life: pa.Table) -> pa.Table:
    """Return the histograms of these lives by hour of publish and channel: LATENCY.

    Earlier batches counted the lives that ended before; later ones will count those still open.
    Replays do not count: an operator decided when they happened. Of a copy that moved after a
    hand-over, the first one counts, and the ack with the hand-over to its receiver.
    """
    is_closed = pc.and_(pc.is_valid(life["handed_ts"]), pc.not_equal(life["state"], OPEN))
    first = life.filter(pc.and_(is_closed, pc.equal(life["generation"], 0)))
    is_new = pc.equal(pc.coalesce(first["former"], 0), 0)
    published = pc.divide(first["msg"], NS_PER_US)
    handed, ended = (first[name].cast(pa.int64()) for name in ("handed_ts", "ended_ts"))
    hour = pc.multiply(pc.divide(published, _US_PER_HOUR), _US_PER_HOUR)
    is_acked = pc.equal(first["state"], Kind.ACKED)

    def timed(what: str, is_meant: pa.ChunkedArray, begin: pa.Array, end: pa.Array) -> pa.Table:
        took = with_columns(first.select(["channel"]), {"hour": hour, **_took(begin, end)})
        return _named(what, took.filter(is_meant))

    parts = [
        timed(DELIVERY, is_new, published, handed),
        timed(ANSWER, is_acked, handed, ended),
        timed(CRITICAL, is_acked, published, ended),
    ]
    return summed(pa.concat_tables(parts), _BY, {"n": ("n", "sum")}).cast(LATENCY)


def _took(begin: pa.ChunkedArray, end: pa.ChunkedArray) -> dict[str, pa.Array]:
    """Return the rounded differences, at least zero, because clocks of two nodes may disagree."""
    us = pc.max_element_wise(pc.subtract(end, begin), 0)
    return {"us": pa.array(rounded(us.to_numpy()))}


def rounded(us: "NDArray[np.int64]") -> "NDArray[np.int64]":
    """Return the middle of each time's bucket."""
    places = np.ceil(np.log(np.maximum(us, 1)) / math.log(_GROWTH))
    middles = 2 * _GROWTH**places / (1 + _GROWTH)
    return np.where(us < 1, 0, np.rint(middles)).astype(np.int64)


def _named(what: str, rows: pa.Table) -> pa.Table:
    each = {"what": pa.repeat(what, len(rows)), "n": pa.repeat(1, len(rows))}
    return with_columns(rows, each).select(LATENCY.names)
