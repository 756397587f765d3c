"""What others read in the tables, each asker with a DuckDB of its own."""

from typing import Any

import duckdb


def asked(question: str) -> Any:
    """The first row of the answer."""
    with duckdb.connect() as others:
        return others.execute(question).fetchone()
