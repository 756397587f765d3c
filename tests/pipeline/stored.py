"""Tables of a lake with the rows that a test wants, as one batch of an ingest."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from holdfast.pipeline import schemas
from holdfast.pipeline.arrow import ARROW, arrow_of
from holdfast.pipeline.lake import Lake
from holdfast.pipeline.latencies import latencies
from holdfast.pipeline.messages import LOST
from tests.unit.pipeline.told import Told, made_of, table_of

LIFE = arrow_of(f"{schemas.LIFE}, state string")


def store(
    place: Path,
    life: pa.Table | None = None,
    events: pa.Table | None = None,
    lost: pa.Table | None = None,
) -> Lake:
    """A lake with these rows in its only batch."""
    lake = Lake(place)
    lake.sign()
    life = LIFE.empty_table() if life is None else life
    _write_parts(lake, "life", "state", life)
    _write(lake, "latency", "", latencies(life))
    _write(lake, "lost", "", LOST.empty_table() if lost is None else lost)
    (lake.checkpoint / "commits").mkdir(parents=True)
    add_events(lake, 0, ARROW.empty_table() if events is None else events)
    return lake


def add_events(lake: Lake, batch: int, events: pa.Table) -> None:
    """Add a batch of these events, which end nobody's life."""
    days = pc.strftime(events["ts"], "%Y-%m-%d").fill_null("__HIVE_DEFAULT_PARTITION__")
    _write_parts(lake, "events", "d", events.append_column("d", days), batch)
    (lake.checkpoint / "commits" / str(batch)).touch()


def store_told(place: Path, told: list[Told], lost: pa.Table | None = None) -> Lake:
    """A lake with what is made of these events."""
    return store(place, made_of(told).life, table_of(told), lost)


def _write_parts(lake: Lake, table: str, by: str, rows: pa.Table, batch: int = 0) -> None:
    for value in pc.unique(rows[by]).to_pylist():
        part = rows.filter(pc.equal(rows[by], value)).drop_columns([by])
        _write(lake, table, f"{by}={value}", part, batch)


def _write(lake: Lake, table: str, part: str, rows: pa.Table, batch: int = 0) -> None:
    folder = lake.folder(table, batch) / part
    folder.mkdir(parents=True)
    pq.write_table(rows, folder / "rows.parquet")
