"""The tables that questions are asked of, whatever engine answers.

A question is one text of SQL that all engines understand alike; tables are named in braces. What an
engine lacks, its module defines.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa


class Tables(Protocol):
    """Tables by name; those that reports read are defined in holdfast.pipeline.reports.views."""

    def ask(self, question: str, most: int | None = None) -> "pa.Table":
        """Return the answer, or its first rows; times are in UTC."""
        ...

    def define(self, name: str, question: str) -> None:
        """Let later questions name the answer to this one, which is found out for each of them."""
        ...

    def hold(self, name: str, question: str) -> None:
        """Let later questions name the answer to this one, which is found out once."""
        ...

    def add(self, name: str, rows: "pa.Table") -> None:
        """Let later questions name these rows."""
        ...

    def keep(self, question: str, place: Path) -> None:
        """Write the whole answer to a new folder, as Parquet."""
        ...
