"""Starts a cluster of Spark's own kind on loopback, from the installed PySpark."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.processes import reserved_port
from holdfast.pipeline.java import find_java

HERE = "127.0.0.1"
# They do little, so the second compiler would only take time.
_QUICK = "-XX:TieredStopAtLevel=1"
_END_S = 60.0


@contextmanager
def standalone(place: Path, workers: int) -> Iterator[str]:
    """Yield the URL of a master with workers of one core each, whose folders are in a place."""
    words = ["--host", HERE, "--webui-port", "0"]
    with reserved_port() as port, ExitStack() as daemons:
        url = f"spark://{HERE}:{port}"
        daemons.enter_context(_daemon(place, "master.Master", *words, "--port", str(port)))
        for name in worker_names(workers):
            words_of_one = ["--work-dir", str(place / name), "--cores", "1", "--memory", "1g"]
            daemons.enter_context(_daemon(place, "worker.Worker", *words, *words_of_one, url))
        yield url


def worker_names(workers: int) -> list[str]:
    """Return the names of the workers' folders."""
    return [f"worker-{number}" for number in range(workers)]


@contextmanager
def _daemon(place: Path, name: str, *words: str) -> Iterator[None]:
    """Run a daemon of Spark, which logs to a file."""
    import pyspark

    home = Path(pyspark.__path__[0])
    known = {**os.environ, "JAVA_HOME": str(find_java().home), "SPARK_HOME": str(home)}
    known |= {"SPARK_LOCAL_IP": HERE, "SPARK_DAEMON_JAVA_OPTS": _QUICK}
    command = [str(home / "bin/spark-class"), f"org.apache.spark.deploy.{name}", *words]
    with (place / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(command, env=known, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait(_END_S)
