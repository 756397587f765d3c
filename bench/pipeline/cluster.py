"""Measures the pipeline on a cluster on this machine: `python -m bench.pipeline.cluster`.

Processor seconds are those of the driver, the master, the workers and all that they start.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import sleep

from bench.journal.generate import generate
from bench.journal.outlets import Streams
from bench.pipeline.__main__ import add_sizes, running_store, size_of
from bench.pipeline.standalone import HERE, standalone
from bench.pipeline.watch import cpu_of, run
from bench.tables import lay_out
from holdfast.pipeline.lake import Lake
from holdfast.pipeline.reports.catalogue import REPORTS
from holdfast.pipeline.session import Engine, open_session

_SETTINGS = {"spark.driver.host": HERE}
_NAME = "bench.pipeline.cluster"
_END_S = 3.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.pipeline.cluster", description=__doc__)
    parser.add_argument("--events", type=int, default=300_000)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    add_sizes(parser)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as name:
        place = Path(name)
        with running_store(place / "store") as store, standalone(place, options.workers) as master:
            load = os.getloadavg()[0]
            print(f"{options.events:,} events, {options.workers} workers, load {load:.1f}")
            generate(
                Streams(store, "holdfast"),
                events=options.events,
                nodes=options.nodes,
                hours=6,
                seed=7,
                size=size_of(options),
            )
            _measure(place / "lake", store, master)


def _measure(lake: Path, store: str, master: str) -> None:
    on_cluster = ["--lake", str(lake), "--master", master]
    for name, value in _SETTINGS.items():
        on_cluster += ["--conf", f"{name}={value}"]
    pipeline = [sys.executable, "-m", "holdfast", "pipeline"]
    found = {
        "ingest": [*pipeline, "ingest", "--once", "--redis", store, *on_cluster],
        "audit": [*pipeline, "audit", "--redis", store, "--engine", "spark", *on_cluster],
        "all reports": [sys.executable, "-m", _NAME, "reports", str(lake), master],
    }
    rows = []
    for name, words in found.items():
        before = cpu_of(os.getpid())
        cost = run(words)
        # Workers count what their executors used once these have ended.
        sleep(_END_S)
        used = cpu_of(os.getpid()) - before
        rows.append([name, f"{cost.wall_s:.1f}", f"{used:.1f}", f"{cost.cpu_s:.1f}"])
    print("\n".join(lay_out(("what", "s", "processor s", "of the driver"), rows, markdown=True)))


def ask_everything(place: Path, master: str) -> None:
    """Ask every report on the cluster."""
    from holdfast.pipeline import on_spark

    lake = Lake(place)
    spark = open_session(Engine(master, quick=lake.is_small(), settings=_SETTINGS))
    try:
        tables = on_spark.of_lake(lake, spark)
        for question in REPORTS.values():
            tables.ask(question, 20)
    finally:
        spark.stop()


if __name__ == "__main__":
    try:
        if sys.argv[1:2] == ["reports"]:
            ask_everything(Path(sys.argv[2]), sys.argv[3])
        else:
            main()
    except subprocess.CalledProcessError as error:
        sys.exit(str(error))
