"""The pipeline on a standalone cluster of two workers, started from the installed PySpark."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import orjson
import pytest

from bench.pipeline.standalone import standalone, worker_names
from holdfast.pipeline.lake import Lake
from holdfast.pipeline.on_duckdb import of_lake
from holdfast.pipeline.reports.catalogue import REPORTS
from tests.pipeline.audited import findings_of
from tests.pipeline.journals import Writer
from tests.pipeline.tales import KINDS
from tests.store.servers import ValkeyServer
from tests.unit.pipeline.stories import the_story

_TIMEOUT_S = 600.0


@pytest.mark.timeout(1000)
def test_two_workers_ingest_and_audit_a_journal_and_answer_as_one_machine_does(
    store: ValkeyServer, tmp_path: Path
) -> None:
    Writer(store).write_all(the_story(), each=5)
    lake = tmp_path / "lake"
    with standalone(tmp_path, workers=2) as master:
        begun = time.time()
        found = on_cluster(store.url, str(lake), master, *KINDS)
        outputs = [tmp_path.glob(f"{name}/app-*/*/stdout") for name in worker_names(2)]
        assert all(any(file.stat().st_mtime > begun for file in files) for files in outputs)
    assert found["events"] == len(the_story())
    # The processes that do most of the work have the options of the driver's Java.
    assert len(found["executors"]) == 2
    for words in found["executors"]:
        assert {"-XX:TieredStopAtLevel=1", "-XX:+UseParallelGC"} <= {*words}
    # In a folder of its own, the audit of this machine remembers nothing of the other.
    lake.rename(tmp_path / "here")
    assert found["findings"] == as_json(findings_of(Lake(tmp_path / "here")))
    with of_lake(Lake(tmp_path / "here")) as tables:
        known = {name: as_json(tables.ask(REPORTS[name]).rows) for name in KINDS}
    assert found["answers"] == known


def on_cluster(*words: str) -> Any:
    command = [sys.executable, "-m", "tests.pipeline.on_cluster", *words]
    done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_S)
    assert (done.returncode, done.stdout != b"") == (0, True), done.stderr.decode()
    return orjson.loads(done.stdout)


def as_json(rows: Any) -> Any:
    return orjson.loads(orjson.dumps(rows))
