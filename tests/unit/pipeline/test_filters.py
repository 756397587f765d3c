"""Filters of Spark on events of the journal: what Arrow evaluates, and what it leaves to Spark."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringStartsWith,
)

from holdfast.pipeline.source.filters import is_known, passing
from tests.unit.pipeline.events import START_US, event, published
from tests.unit.pipeline.framed_events import one_run, table_of
from tests.unit.pipeline.stories import acked, handed

TOLD = [published(1, 1, "/a/b"), handed(2, 1, "ann/1"), acked(3, 1, "ann/1"), event("node", 4)]


def at(after_s: int) -> datetime:
    return datetime.fromtimestamp(START_US / 1e6, UTC) + timedelta(seconds=after_s)


def kinds(*filters: Filter) -> list[Any]:
    found = [*passing(table_of(one_run(TOLD)).to_batches(), filters)]
    return [kind for batch in found for kind in batch["kind"].to_pylist()]


@pytest.mark.parametrize(
    ("each", "found"),
    [
        (EqualTo(("kind",), "acked"), ["acked"]),
        (In(("kind",), ("acked", "node", None)), ["acked", "node"]),
        (IsNull(("msg",)), ["node"]),
        (IsNotNull(("receiver",)), ["handed", "acked"]),
        (StringStartsWith(("channel",), "/a"), ["published"]),
        (GreaterThan(("ts",), at(3)), ["node"]),
        (GreaterThanOrEqual(("ts",), at(3)), ["acked", "node"]),
        (LessThan(("seq",), 2), ["published"]),
        (LessThanOrEqual(("seq",), 2), ["published", "handed"]),
    ],
)
def test_events_that_do_not_pass_a_filter_are_left_out(each: Filter, found: list[str]) -> None:
    assert is_known(each)
    assert kinds(each) == found


def test_events_pass_all_filters_or_none() -> None:
    assert kinds() == ["published", "handed", "acked", "node"]
    assert kinds(IsNotNull(("receiver",)), GreaterThan(("ts",), at(2))) == ["acked"]


@pytest.mark.parametrize(
    "each",
    [
        Not(EqualTo(("kind",), "acked")),
        StringContains(("kind",), "ack"),
        EqualNullSafe(("kind",), None),
        EqualTo(("kind",), None),
        EqualTo(("kind", "inner"), 1),
        EqualTo(("nothing",), 1),
    ],
)
def test_other_filters_are_left_to_spark(each: Filter) -> None:
    assert not is_known(each)


def test_batches_keep_their_columns() -> None:
    [batch] = passing(table_of(one_run(TOLD)).to_batches(), [EqualTo(("kind",), "acked")])
    assert isinstance(batch, pa.RecordBatch)
    assert batch.schema.equals(table_of([]).schema)
