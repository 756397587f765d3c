"""What the tasks of an ingest do with ranges, and what they tell of them."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import pyarrow as pa

from holdfast.pipeline.arrow import arrow_of, give_back
from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.source.event_files import RECEIPT
from holdfast.pipeline.source.outline import BEGIN, Position
from holdfast.pipeline.source.planning import Offset, order
from holdfast.pipeline.source.ranges import piece_of
from holdfast.pipeline.source.reading import Piece, ms_of

# A row is a receipt of events, or else a range that was taken, as JSON.
TAKEN = f"{RECEIPT}, range string"
_TAKEN = arrow_of(TAKEN)


def take_ranges(
    write: Callable[[Piece], Iterator[pa.Table]], namespace: str, rows: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Write the events of ranges; yield the receipts, then the ranges: TAKEN."""
    for row in (row for batch in rows for row in batch.to_pylist()):
        for receipts in write(piece_of(row, namespace)):
            named = [each | {"range": None} for each in receipts.to_pylist()]
            yield pa.RecordBatch.from_pylist(named, _TAKEN)
        yield pa.RecordBatch.from_pylist([{"range": json.dumps(row)}], _TAKEN)
    give_back()


class Taken(NamedTuple):
    """What was taken in a batch."""

    # As in event_files.
    receipts: list[tuple[Any, ...]]
    # By node and place in its stream.
    ranges: list[dict[str, Any]]

    @classmethod
    def of(cls, rows: Sequence[tuple[Any, ...]]) -> "Taken":
        """Return what tasks have told: TAKEN."""
        ranges = [json.loads(row[-1]) for row in rows if row[-1] is not None]
        ranges.sort(key=lambda each: (each["node"], order(each["first"])))
        return cls([row[:-1] for row in rows if row[-1] is None], ranges)

    @property
    def covered_s(self) -> float:
        """The time in which the store got these frames."""
        ms = [ms_of(each[name]) for each in self.ranges for name in ("first", "last")]
        return (max(ms) - min(ms)) / 1000

    def end(self, start: Offset) -> Offset | None:
        """Return the offset at which these ranges end; None if they are before the start already.

        Raises:
            PipelineFailed: They are not those after the start.
        """
        end, known = dict(start), 0
        for node, ranges in groupby(self.ranges, itemgetter("node")):
            for each in ranges:
                at, given = Position.of(end.get(node)), json.loads(each["position"])
                if _follows(at, each, Position.of(given)):
                    end[node] = given
                elif order(each["last"]) <= order(at.id):
                    known += 1
                else:
                    raise _misplaced(node)
        if known and known < len(self.ranges):
            raise _misplaced("")
        return None if known or not self.ranges else end


def _follows(at: Position, each: dict[str, Any], position: Position) -> bool:
    is_other_store = each["after"] == BEGIN and at.id != BEGIN and position.seed != at.seed
    return each["after"] == at.id or is_other_store


def _misplaced(node: str) -> PipelineFailed:
    where = f" of node {node}" if node else ""
    return PipelineFailed(
        f"Spark's checkpoint does not belong to these tables: the frames{where} that it gives are "
        "not the next ones. Nothing of them was stored: run the command again"
    )
