"""An ingest that is killed at any moment loses nothing and tells nothing twice.

HOLDFAST_KILLS says how often it is killed; by default once, for a start of Spark takes seconds.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from pipeline.audit import violations
from pipeline.ingest import Source, take_what_is_there
from pipeline.lake import Lake
from tests.pipeline.journals import Writer
from tests.pipeline.stories import the_story
from tests.serving import ROOT
from tests.store.servers import ValkeyServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KILLS = int(os.environ.get("HOLDFAST_KILLS", "1"))
# Longer than a batch takes.
_LONGEST_S = 3.0
_PATIENCE_S = 100.0


def kill_one(store: ValkeyServer, lake: Lake, most: int) -> None:
    """Start an ingest; kill it and its Java somewhere in the batches behind the next one."""
    words = [sys.executable, "-m", "tests.pipeline.mortal_ingest", store.url, lake.root, most]
    process = subprocess.Popen(
        [*map(str, words)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    with process.stdout as said:
        # The first batch of this one is in its tables.
        line = said.readline()
        assert line.startswith(b"Taken"), line + said.read()
        time.sleep(random.uniform(0, _LONGEST_S))
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(_PATIENCE_S)


def test_every_event_is_there_once_whoever_was_killed(
    spark: "SparkSession", store: ValkeyServer, tmp_path: Path
) -> None:
    told = the_story()
    Writer(store).write_all(told, each=2)
    lake = Lake(tmp_path / "lake")
    most = max(2, len(told) // (4 * KILLS))
    for _ in range(KILLS):
        kill_one(store, lake, most)
    take_what_is_there(spark, Source(store.url), lake, lambda taken: None)
    counted = duckdb.execute(
        "select count(*), count(distinct (epoch, seq, pos)) "
        f"from read_parquet('{lake.root}/events/*/*/*.parquet')"
    ).fetchone()
    assert counted == (len(told), len(told))
    assert violations(lake.table(spark, "events")).isEmpty()
    life = lake.table(spark, "life")
    assert life.count() == life.select("msg", "receiver", "generation").distinct().count() == 20
