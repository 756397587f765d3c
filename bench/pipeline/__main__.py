"""Measures the pipeline with generated journals, on each of its engines in turn."""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bench.journal.generate import generate
from bench.journal.life import ORDINARY, Size
from bench.journal.outlets import Streams
from bench.pipeline.steps import STEPS
from bench.pipeline.watch import Cost, run
from bench.tables import lay_out
from holdfast.store.local.embedded import Durability, EmbeddedValkey

_MIB = 1024 * 1024


class Bar(NamedTuple):
    """The target of a figure."""

    text: str
    most: float | None = None
    least: float | None = None

    def holds(self, value: float) -> bool:
        return value <= (self.most or value) and value >= (self.least or value)


BARS = {
    "start": Bar("<= 2.5", most=2.5),
    "noop": Bar(">= 0.6", least=0.6),
    "parquet": Bar(">= 0.35", least=0.35),
    "idle": Bar("<= 1", most=1.0),
}
# The parts of the comparison, and the step of each engine that makes them.
_PARTS = {
    "ingest, cold": ("ingest", "cold"),
    "ingest, warm": ("ingest", "warm"),
    "all reports, cold": ("answers", "cold"),
    "all reports, warm": ("answers", "warm"),
    "audit": ("answers", "audit"),
}
_ENGINES = ("duckdb", "local", "spark")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.pipeline", description=__doc__)
    parser.add_argument("--events", type=int, nargs="+", default=[2_000_000])
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--place", type=Path, help="folder of stores and tables; default: in /tmp")
    add_sizes(parser)
    options = parser.parse_args()
    for events in options.events:
        with tempfile.TemporaryDirectory(prefix="holdfast-bench-", dir=options.place) as place:
            measure(Path(place), events, options.nodes, size_of(options))


def add_sizes(parser: argparse.ArgumentParser) -> None:
    """Add options for the traffic of each node."""
    parser.add_argument("--receivers", type=int, default=ORDINARY.receivers, help="of each node")
    parser.add_argument("--channels", type=int, default=ORDINARY.channels, help="of each node")
    parser.add_argument("--busiest", type=float, help="share of messages in one channel, as in 0.9")


def size_of(options: argparse.Namespace) -> Size:
    return Size(options.receivers, options.channels, options.busiest)


def measure(place: Path, events: int, nodes: int, size: Size) -> None:
    with running_store(place / "store") as url:
        print(f"\n{events:,} events of {nodes} nodes, load {os.getloadavg()[0]:.1f}\n", flush=True)
        generate(Streams(url, "holdfast"), events=events, nodes=nodes, hours=6, seed=7, size=size)
        found = {step: _step(step, url, place / "lake") for step in STEPS}
    _print_figures(events, found)
    _print_comparison(found)
    print(f"\nload at the end {os.getloadavg()[0]:.1f}")


@contextmanager
def running_store(data: Path) -> Iterator[str]:
    with asyncio.Runner() as runner:
        store = EmbeddedValkey(data, Durability.MEMORY)
        url = runner.run(store.open())
        try:
            yield url
        finally:
            runner.run(store.close())


class Step(NamedTuple):
    cost: Cost
    figures: dict[str, Any]


def _step(name: str, url: str, lake: Path) -> Step:
    cost = run([sys.executable, "-m", "bench.pipeline.steps", name, url, str(lake)])
    return Step(cost, json.loads(cost.said))


def _print_figures(events: int, found: dict[str, Step]) -> None:
    source, millions = found["source"].figures, events / 1e6
    rows = [
        _row("start of Spark, s", "start", found["start"].figures["s"]),
        _row("source to nothing, M/s, cold", "", millions / source["noop"][0]),
        _row("source to nothing, M/s, warm", "noop", millions / min(source["noop"][1:])),
        _row("source to Parquet, M/s, warm", "parquet", millions / min(source["parquet"])),
        _row("idle ingest, % of a core", "idle", 100 * found["idle"].figures["share"]),
    ]
    print("\n".join(lay_out(("what", "found", "wanted", ""), rows, markdown=True)), flush=True)


def _row(text: str, name: str, value: float) -> list[str]:
    bar = BARS.get(name)
    if bar is None:
        return [text, f"{value:,.2f}", "", ""]
    return [text, f"{value:,.2f}", bar.text, "" if bar.holds(value) else "missed"]


def _print_comparison(found: dict[str, Step]) -> None:
    """Print the processor seconds of each part on each engine, and the most memory of its step."""
    rows = []
    for part, (step, figure) in _PARTS.items():
        cells = [_cell(found.get(f"{step}-{engine}"), figure) for engine in _ENGINES]
        rows.append([part, *cells])
    heads = [f"{engine}, processor s (MiB)" for engine in _ENGINES]
    print()
    print("\n".join(lay_out(("what", *heads), rows, markdown=True)))
    steps = ("ingest-local", "ingest-spark", "lives-duckdb")
    states = {step: found[step].figures["states"] for step in steps}
    counted = [_of_copies(each) for each in states.values()]
    is_same = counted == counted[:1] * len(counted)
    print(f"\nlives by state are {'the same' if is_same else f'NOT the same: {states}'}")


def _cell(step: Step | None, figure: str) -> str:
    if step is None:
        return ""
    return f"{step.figures[figure]:.1f} ({step.cost.peak_bytes / _MIB:,.0f})"


def _of_copies(states: dict[str, int]) -> dict[str, int]:
    """Return the states that the query of DuckDB knows: it looks for no moves and lost copies."""
    others = ("lost_with_process", "moved")
    return {name: count for name, count in states.items() if name not in others}


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(str(error))
