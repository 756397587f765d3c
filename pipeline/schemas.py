"""The tables' columns, with the names that they have in the journal."""

from typing import TYPE_CHECKING

from pipeline.incidents import INCIDENTS

if TYPE_CHECKING:
    from pyspark.sql import Column

# A row for each event, as app.journal.schema.Event has it, and the frame that it came in.
EVENT = (
    "node string, ts timestamp, kind string, msg bigint, origin string, channel string, "
    "receiver string, copies int, kept int, size int, priority int, sender string, attempt int, "
    "code string, letter bigint, fingerprint string, generation int, what string, number bigint"
)
FRAME = "epoch string, seq bigint, pos int"
JOURNAL = f"{EVENT}, {FRAME}"


def is_incident(kind: "Column") -> "Column":
    """Whether a row of the journal tells of the journal itself."""
    return kind.isin(*INCIDENTS)
