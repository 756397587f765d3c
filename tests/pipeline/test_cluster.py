"""The pipeline on a standalone cluster of two workers, started from the installed PySpark."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from bench.processes import reserved_port
from holdfast.pipeline.java import find_java
from tests.pipeline.journals import Writer
from tests.store.servers import ValkeyServer
from tests.unit.pipeline.stories import the_story

_TIMEOUT_S = 300.0
HERE = "127.0.0.1"
# All processes are short-lived: the second compiler would only take time.
QUICK = "-XX:TieredStopAtLevel=1"


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """A master and two workers of one core each."""
    words = ["--host", HERE, "--webui-port", "0"]
    with reserved_port() as port:
        url = f"spark://{HERE}:{port}"
        daemons = [daemon(tmp_path, "master.Master", *words, "--port", str(port))]
        for name in ("first", "second"):
            place = ["--work-dir", str(tmp_path / name), "--cores", "1", "--memory", "1g"]
            daemons.append(daemon(tmp_path, "worker.Worker", *words, *place, url))
        yield url
        for each in daemons:
            each.terminate()
            each.wait(_TIMEOUT_S)


def daemon(place: Path, name: str, *words: str) -> "subprocess.Popen[bytes]":
    """Start a daemon of Spark, which logs to a file."""
    import pyspark

    home = Path(pyspark.__path__[0])
    known = {**os.environ, "JAVA_HOME": str(find_java().home), "SPARK_HOME": str(home)}
    known |= {"SPARK_LOCAL_IP": HERE, "SPARK_DAEMON_JAVA_OPTS": QUICK}
    with (place / f"{name}.log").open("ab") as log:
        command = [str(home / "bin/spark-class"), f"org.apache.spark.deploy.{name}", *words]
        return subprocess.Popen(command, env=known, stdout=log, stderr=log)


def run(*words: str) -> list[dict[str, object]]:
    command = [sys.executable, "-m", "holdfast", "pipeline", *words, "--json"]
    done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_S)
    assert done.returncode == 0, done.stderr.decode()
    return [orjson.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.timeout(1000)
def test_two_workers_ingest_a_journal_and_report_on_it(
    store: ValkeyServer, master: str, tmp_path: Path
) -> None:
    Writer(store).write_all(the_story(), each=5)
    settings = {
        "spark.driver.host": HERE,
        "spark.driver.extraJavaOptions": QUICK,
        "spark.executor.extraJavaOptions": QUICK,
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    place = ["--lake", str(tmp_path / "lake"), "--engine", "spark", "--master", master]
    for name, value in settings.items():
        place += ["--conf", f"{name}={value}"]
    begun = time.time()
    [taken] = run("ingest", "--once", "--redis", store.url, *place)
    assert taken["events"] == len(the_story())
    assert sum(row["copies"] for row in run("report", "funnel", *place)) == 20  # type: ignore[misc]
    worked = [tmp_path.glob(f"{name}/app-*/*/stdout") for name in ("first", "second")]
    assert all(any(file.stat().st_mtime > begun for file in files) for files in worked)
