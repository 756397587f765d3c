"""Measures what many days cost: `python -m bench.pipeline.days --days 500 1000`."""

import argparse
import os
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import pyarrow as pa

from bench.pipeline.steps import audit
from bench.tables import lay_out
from holdfast.pipeline import on_duckdb, upkeep
from holdfast.pipeline.arrow import batch
from holdfast.pipeline.ingest import write_lives
from holdfast.pipeline.lake import EVENTS, Lake, NewFile
from holdfast.pipeline.reports.catalogue import REPORTS
from holdfast.pipeline.runs import runs_of
from holdfast.pipeline.source.event_files import write_events
from holdfast.pipeline.tasks import LocalTasks

_US_PER_DAY = 86_400_000_000
_FIRST = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp()) // 86_400
_KINDS = ("published", "handed", "acked")
_PER_FRAME = 500
_CHANNELS, _RECEIVERS = 50, 500


def events_of(day: int, messages: int, seq: int) -> pa.RecordBatch:
    """Return the events of a day since 1970: each message is published, handed over and acked."""
    rows = messages * len(_KINDS)
    number = np.arange(rows) // len(_KINDS)
    kind = np.arange(rows) % len(_KINDS)
    published = day * _US_PER_DAY + number * (_US_PER_DAY // (messages + 1))
    columns = {
        "node": pa.repeat("n1", rows),
        "ts": pa.array(published + kind * 1000),
        "kind": pa.array(np.array(_KINDS)[kind]),
        "msg": pa.array(published * 1000),
        "origin": pa.repeat("n1", rows),
        "channel": pa.array([f"/bench/{each % _CHANNELS}" for each in number]),
        "receiver": pa.array(
            [f"joe/{each // 3 % _RECEIVERS}" if each % 3 else None for each in range(rows)]
        ),
        "copies": pa.array(np.where(kind == 0, 1, 0)),
        "size": pa.array(np.where(kind == 0, 100, 0)),
        "attempt": pa.array(np.where(kind == 0, 0, 1)),
        "generation": pa.repeat(0, rows),
        "epoch": pa.repeat("seed-1", rows),
        "seq": pa.array(seq + np.arange(rows) // _PER_FRAME),
        "pos": pa.array(np.arange(rows) % _PER_FRAME),
    }
    return batch(columns, rows)


def make(lake: Lake, days: range, messages: int, parts: int = 2) -> None:
    """Add days to a lake, with this number of messages and files of events each."""
    lake.sign()
    files: list[Path] = []
    made: list[NewFile] = []
    for day in days:
        rows = events_of(day, messages, 1 + (day - _FIRST) * (1 + 3 * messages // _PER_FRAME))
        size = -(-rows.num_rows // parts // 3) * 3
        for first in range(0, rows.num_rows, size):
            [*told] = write_events(iter([rows.slice(first, size)]), lake.root / EVENTS)
            made += [NewFile(EVENTS, told[0].column("file")[0].as_py())]
            files.append(lake.root / EVENTS / made[-1].file)
    with lake.changing():
        lives = write_lives(LocalTasks(1), files, lake, runs_of([]))
        lake.commit([*made, *lives], {})


def measure(root: Path, days: int, events: int) -> list[list[str]]:
    """Return a row for each step, with its seconds and processor seconds."""
    lake, messages = Lake(root), max(events // days // len(_KINDS), 1)
    make(lake, range(_FIRST, _FIRST + days), messages)
    rows = [_row("audit", lambda: _audit(lake)), _row("audit again", lambda: _audit(lake))]
    make(lake, range(_FIRST + days, _FIRST + days + 1), messages)
    rows.append(_row("audit of a new day", lambda: _audit(lake)))
    rows.append(_row("all reports", lambda: _report(lake)))
    merges = [*upkeep.to_compact(lake)]
    rows.append(_row(f"compact, {len(merges)} merges", lambda: _compact(lake)))
    rows.append(_row("audit after that", lambda: _audit(lake)))
    return rows


def _audit(lake: Lake) -> None:
    with on_duckdb.of_lake(lake) as tables:
        audit(tables, lake)


def _report(lake: Lake) -> None:
    with on_duckdb.of_lake(lake) as tables:
        for question in REPORTS.values():
            tables.ask(question, 50)


def _compact(lake: Lake) -> None:
    upkeep.compact(lake, [*upkeep.to_compact(lake)], lambda: None)


def _row(what: str, work: Callable[[], None]) -> list[str]:
    begun, busy = perf_counter(), process_time()
    work()
    return [what, f"{perf_counter() - begun:.2f}", f"{process_time() - busy:.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.pipeline.days", description=__doc__)
    parser.add_argument("--days", type=int, nargs="+", default=[500, 1000])
    parser.add_argument("--events", type=int, default=1_000_000)
    options = parser.parse_args()
    for days in options.days:
        with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as place:
            rows = measure(Path(place), days, options.events)
            load = os.getloadavg()[0]
            print(f"\n{options.events:,} events of {days:,} days, load {load:.1f}\n")
            print("\n".join(lay_out(("what", "s", "processor s"), rows, markdown=True)), flush=True)


if __name__ == "__main__":
    main()
