"""Lives and messages, made from events: each task makes those of a span, and keeps them itself.

Spark hears only what there is, as of events: see `pipeline.source.keeping`.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.arrow import ARROW, arrow_of
from pipeline.lake import OPEN
from pipeline.lives import LIFE, lives
from pipeline.messages import MESSAGES, known, lost, messages, still_unsettled
from pipeline.runs import Runs, carried_with_runs, with_runs
from pipeline.source.keeping import PACKED, packing
from pipeline.spans import Span, parts, read, spans
from pipeline.tasks import in_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RECEIPT = "table string, place string, file string"
# Of these nothing depends on it.
_EVENTS = pa.schema(
    [each for each in ARROW if each.name not in ("size", "priority", "sender", "what", "number")]
)


class Made(NamedTuple):
    """A file of a batch of a table, and in which part of the batch it belongs."""

    table: str
    place: str
    file: str


class Settled(NamedTuple):
    """Lives, with the states that they are in; messages with copies on their way; and the lost."""

    life: pa.Table
    messages: pa.Table
    lost: pa.Table


def make(
    spark: "SparkSession", tables: Mapping[str, Iterable[Path]], runs: Runs, into: Path
) -> list[Made]:
    """What is made from these files of events, and of what was carried.

    Args:
        tables: Files of `events`, and of `messages` and open lives.
    """
    into.mkdir(parents=True, exist_ok=True)
    found = spans(tables, spark.sparkContext.defaultParallelism)
    receipts = in_tasks(spark, partial(_receipts, runs, into), found, _RECEIPT)
    return [Made(*row) for row in receipts.collect()]


def _receipts(runs: Runs, into: Path, span: Span) -> Iterator[pa.Table]:
    made = [each._asdict() for part in parts(span) for each in make_of(part, runs, into)]
    yield pa.Table.from_pylist(made, arrow_of(_RECEIPT))


def make_of(span: Span, runs: Runs, into: Path) -> Iterator[Made]:
    """What is made of the messages of a span; each table's part of it is a file."""
    carried = (read(span, OPEN, LIFE), read(span, "messages", MESSAGES))
    life, *others = settle(read(span, "events", _EVENTS), *carried, runs)
    for state in pc.unique(life["state"]).to_pylist():
        of_state = life.filter(pc.equal(life["state"], state)).drop_columns(["state"])
        yield Made("life", f"state={state}", _written(of_state, into))
    for table, rows in zip(("messages", "lost"), others, strict=True):
        if len(rows):
            yield Made(table, "", _written(rows, into))


def settle(events: pa.Table, copies: pa.Table, unsettled: pa.Table, runs: Runs) -> Settled:
    """What becomes of open copies and unsettled messages by these events, and of what is new."""
    told = with_runs(events, runs)
    of_messages = known(told, carried_with_runs(unsettled, runs))
    now = messages(of_messages)
    return Settled(
        lives(told, carried_with_runs(copies, runs), of_messages),
        still_unsettled(now),
        lost(now, runs),
    )


def _written(rows: pa.Table, into: Path) -> str:
    name = f"{uuid4().hex}.parquet"
    pq.write_table(rows, into / name, row_group_size=PACKED, **packing(rows.schema))
    return name
