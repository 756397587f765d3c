"""Tables of a lake with the rows that a test wants, as one batch of an ingest."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from holdfast.pipeline import schemas
from holdfast.pipeline.arrow import ARROW, arrow_of
from holdfast.pipeline.lake import EVENTS, OPEN, Lake, NewFile
from holdfast.pipeline.latencies import latencies
from holdfast.pipeline.messages import LOST
from tests.unit.pipeline.framed_events import FramedEvent, made_of, table_of

LIFE = arrow_of(schemas.LIFE)


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
    is_open = pc.equal(life["state"], OPEN)
    tables = {
        "life": life.filter(pc.invert(is_open)),
        OPEN: life.filter(is_open),
        "latency": latencies(life),
        "lost": LOST.empty_table() if lost is None else lost,
    }
    made = [_write(lake, table, "rows.parquet", rows) for table, rows in tables.items()]
    lake.commit(made, {}, replaced=())
    add_events(lake, 0, ARROW.empty_table() if events is None else events)
    return lake


def add_events(lake: Lake, batch: int, events: pa.Table) -> None:
    """Add a batch of these events, without lives."""
    days = pc.strftime(events["ts"], "%Y-%m-%d")
    made = [
        _write(lake, EVENTS, f"d={day}/{batch}.parquet", events.filter(pc.equal(days, day)))
        for day in pc.unique(days).to_pylist()
    ]
    lake.commit(made, {}, replaced=())


def store_events(place: Path, events: list[FramedEvent], lost: pa.Table | None = None) -> Lake:
    """A lake with these events and the tables made of them."""
    return store(place, made_of(events).life, table_of(events), lost)


def _write(lake: Lake, table: str, name: str, rows: pa.Table) -> NewFile:
    file = lake.root / table / name
    file.parent.mkdir(exist_ok=True)
    pq.write_table(rows, file)
    return NewFile(table, name)
