"""Events of older servers, for which each move of a copy was a publish of another one.

Their `published` has the copy in its new queue, and only `moved` says that there is one less in the
former queue. Where such events are read, publishes of one copy less are added: then they count as
newer events do.
"""

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.journal.schema import NS_PER_US, Kind
from holdfast.pipeline.arrow import ARROW, batch
from holdfast.pipeline.copies import MESSAGE
from holdfast.pipeline.rows import Sums, beside, columns_of, summed

# Not the position of an event in its frame.
ADDED = -1
_FRAME = ("node", "epoch", "seq")
_OF_MESSAGE: Sums = {name: (name, "max") for name in ("channel", "sender", "kept")}
# What the additions are made of.
NEEDED = pa.schema([ARROW.field(name) for name in (*MESSAGE, *_FRAME, *_OF_MESSAGE, "kind", "ts")])


def taken_back(events: pa.Table) -> pa.RecordBatch:
    """Return a publish of one copy less for each move: NEEDED.

    Where two copies became one, a frame does not have the channel and the publisher.
    """
    moves = events.filter(pc.equal(events["kind"], Kind.MOVED))
    published = events.filter(pc.equal(events["kind"], Kind.PUBLISHED))
    moves = moves.select([*MESSAGE, *_FRAME, "ts"])
    moves = beside(moves, summed(published, MESSAGE, _OF_MESSAGE), MESSAGE).combine_chunks()
    us, is_kept = pc.divide(moves["msg"], NS_PER_US), pc.greater(moves["kept"], 0)
    columns = {
        **columns_of(moves),
        "kind": pa.repeat(Kind.PUBLISHED, len(moves)),
        "ts": pc.min_element_wise(us, moves["ts"].cast(pa.int64())),
        "copies": pa.repeat(-1, len(moves)),
        "kept": pc.if_else(is_kept.fill_null(False), -1, 0),
        "size": pa.repeat(0, len(moves)),
        "pos": pa.repeat(ADDED, len(moves)),
    }
    [made] = pa.table(columns).combine_chunks().to_batches() or [None]
    return batch({} if made is None else dict(zip(columns, made.columns, strict=True)), len(moves))
