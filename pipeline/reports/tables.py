"""The tables for questions, whichever engine answers them.

A question is one text of SQL with the same meaning for all engines; the names of tables are in
braces. The module of an engine defines what the engine lacks.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

_NAME = re.compile(r"\{(\w+)\}")


def names_in(question: str) -> set[str]:
    """Return the names of tables in a question."""
    return {*_NAME.findall(question)}


class Answer(NamedTuple):
    """The rows of an answer; times are in UTC."""

    columns: list[str]
    rows: list[tuple[Any, ...]]

    def by_name(self) -> list[dict[str, Any]]:
        """Return the rows with the names of their columns."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


class Tables(Protocol):
    """Tables by name; those that reports read are defined in holdfast.pipeline.reports.views."""

    # The number of their lake's state.
    state: int

    def ask(self, question: str, most: int | None = None) -> Answer:
        """Return the answer, or its first rows."""
        ...

    def define(self, name: str, question: str) -> None:
        """Give a question a name for later questions; it runs at each use."""
        ...

    def materialize(self, name: str, question: str) -> None:
        """Give a question a name for later questions; it runs once."""
        ...

    def add(self, name: str, schema: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Give these few rows a name for later questions; they have no times."""
        ...

    def add_files(self, name: str, files: Sequence[Path], schema: str) -> None:
        """Give the rows of these files a name; the first question that needs them checks them."""
        ...

    def keep(self, question: str, place: Path) -> None:
        """Write the whole answer to a new folder, as Parquet."""
        ...

    def keep_by(self, column: str, question: str, place: Path) -> None:
        """Write the answer to a new folder that has one for each value: `COLUMN=VALUE`."""
        ...
