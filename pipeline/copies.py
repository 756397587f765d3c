"""Copies and their possible ends, for tables and for queries."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from holdfast.journal.schema import SETTLED

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MESSAGE = ("msg", "origin")
COPY = (*MESSAGE, "receiver")
ENDS = sorted(SETTLED)
# It was only in the memory of a process that ended.
LOST = "lost_with_process"


def is_kind(*kinds: str) -> "Column":
    """Return whether an event is of one of these kinds."""
    return F.col("kind").isin(*kinds)


def together(rows: "DataFrame") -> "DataFrame":
    """Partition rows by message once, so that later queries need not move them."""
    return rows.repartition(*MESSAGE)
