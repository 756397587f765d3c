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
    events = ARROW.empty_table() if events is None else events
    days = pc.strftime(events["ts"], "%Y-%m-%d").fill_null("__HIVE_DEFAULT_PARTITION__")
    _write_parts(lake, "events", "d", events.append_column("d", days))
    _write_parts(lake, "life", "state", life)
    _write(lake, "latency", "", latencies(life))
    _write(lake, "lost", "", LOST.empty_table() if lost is None else lost)
    commits = lake.checkpoint / "commits"
    commits.mkdir(parents=True)
    (commits / "0").touch()
    return lake


def store_told(place: Path, told: list[Told], lost: pa.Table | None = None) -> Lake:
    """A lake with what is made of these events."""
    return store(place, made_of(told).life, table_of(told), lost)


def _write_parts(lake: Lake, table: str, by: str, rows: pa.Table) -> None:
    for value in pc.unique(rows[by]).to_pylist():
        part = rows.filter(pc.equal(rows[by], value)).drop_columns([by])
        _write(lake, table, f"{by}={value}", part)


def _write(lake: Lake, table: str, part: str, rows: pa.Table) -> None:
    folder = lake.folder(table, 0) / part
    folder.mkdir(parents=True)
    pq.write_table(rows, folder / "rows.parquet")
