"""Queries as other programs ask them, each with a DuckDB of its own."""

from typing import Any

import duckdb
from deltalake import DeltaTable

from holdfast.pipeline.lake import TABLES, Lake


def asked(lake: Lake, question: str) -> Any:
    """The first row of the answer."""
    with duckdb.connect() as others:
        for table in TABLES:
            others.register(table, DeltaTable(lake.root / table).to_pyarrow_dataset())
        return others.execute(question).fetchone()
