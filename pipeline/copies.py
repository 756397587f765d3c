"""What a copy is, and what can become of one: in the words of tables, and of questions to Spark."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from app.journal.schema import SETTLED

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MESSAGE = ("msg", "origin")
COPY = (*MESSAGE, "receiver")
ENDS = sorted(SETTLED)
# It was in a process alone, and that has ended.
LOST = "lost_with_process"


def is_kind(*kinds: str) -> "Column":
    """Whether an event is one of these."""
    return F.col("kind").isin(*kinds)


def together(rows: "DataFrame") -> "DataFrame":
    """All that is about a message in one place: whatever is asked of it, it need not move again."""
    return rows.repartition(*MESSAGE)
