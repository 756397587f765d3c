"""The Spark session: local, on a cluster, or remote through Spark Connect."""

import logging
import os
import signal
import socket
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from holdfast.distribution import install_command
from holdfast.pipeline.class_archive import options_for_archive
from holdfast.pipeline.failures import WHOLE, PipelineFailed, in_short, in_words
from holdfast.pipeline.java import find_java
from holdfast.pipeline.places import log_settings
from holdfast.pipeline.python import ARROW_POOL, python_for_spark

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

# A task is tried as often as in a cluster: on a busy machine, the Python of a task may take longer
# than the ten seconds that Spark gives it.
LOCAL = "local[*,4]"
_CONNECT_PORT = 15002
_TIMEOUT_S = 10.0
MASTERS = ("local", "spark://", "k8s://")
# Speeds up short work, at the cost of a third of the speed of long work.
_QUICK = "-XX:TieredStopAtLevel=1"
# With Java's usual thresholds, the second compiler is always busy with code that runs a few
# thousand times; code that runs for every event is compiled early anyway.
_LONG = (
    "-XX:Tier4InvocationThreshold=100000 -XX:Tier4MinInvocationThreshold=12000 "
    "-XX:Tier4CompileThreshold=300000 -XX:Tier4BackEdgeThreshold=800000"
)
_DRIVER, _EXECUTORS = "spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"
_EVERYWHERE = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.parquet.compression.codec": "zstd",
    # The compressed size of data that is combined in memory at once.
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "16m",
    # A query that has nothing new does nothing.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    # The common format, which takes half the work.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
# For each file and folder, Java would start chmod once and readlink four times. So files are
# renamed by a system call, and have no checksums or markers, which nothing reads.
_FILES = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}
# What the processes of Python get from their environment, here and on a cluster.
_PROCESSES = {f"spark.executorEnv.{ARROW_POOL[0]}": ARROW_POOL[1]}
# Partitions of large shuffles for each core; each fits into memory.
_PIECES = 16
_HERE = {
    # Call sites of plans are not needed, and a remote Spark cannot be configured.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.python.daemon.module": "holdfast.pipeline.workers",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    # Files are local: each core gets its share, even of small ones.
    "spark.sql.files.openCostInBytes": "262144",
    # About a million compressed events, so a task's results fit into memory.
    "spark.sql.files.maxPartitionBytes": "4m",
}


@dataclass(frozen=True, slots=True)
class Engine:
    """Where Spark runs.

    Args:
        quick: Prefer a fast start to high speed, for short work.
        settings: Further settings of Spark; they override this module's.
    """

    master: str = LOCAL
    remote: str | None = None
    quick: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.remote is not None and not self.remote.startswith("sc://"):
            raise PipelineFailed(
                f"{self.remote!r} is not a Spark Connect address: write sc://HOST:15002"
            )
        if not self.master.startswith(MASTERS):
            raise PipelineFailed(
                f"{self.master!r} is not a Spark master: write local[*], spark://HOST:7077 or k8s://URL"
            )

    @property
    def is_local(self) -> bool:
        return self.remote is None and self.master.startswith("local")


def open_session(engine: Engine) -> "SparkSession":
    """Start or join a session, which the caller stops.

    Raises:
        PipelineFailed: Spark or its Java is missing or does not start; the text says what to do.
    """
    _prepare_python()
    if engine.remote is not None:
        return _connect(engine)
    return _start(engine)


def settings_of(engine: Engine) -> dict[str, str]:
    """Return Spark's settings."""
    settings = {**_EVERYWHERE, **_FILES, **_PROCESSES}
    if engine.is_local:
        # Spark uses fewer for small data.
        pieces = _PIECES * _cores(engine.master)
        settings |= _HERE | {"spark.sql.shuffle.partitions": str(pieces)}
        settings["spark.sql.warehouse.dir"] = str(Path(tempfile.gettempdir()) / "holdfast-spark")
    return {**settings, **engine.settings}


def _start(engine: Engine) -> "SparkSession":
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    java = find_java()
    os.environ["JAVA_HOME"] = str(java.home)
    # Otherwise workers run any python3, which may lack Holdfast. On a cluster Holdfast may be
    # installed elsewhere, so an existing setting wins.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if engine.is_local:
        os.environ["PYSPARK_PYTHON"] = str(python_for_spark())
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings = settings_of(engine)
    options = [*options_for_archive(java), *_options_of_java(engine, settings, _DRIVER)]
    # A directory on the class path would prevent the archive.
    options.append(f"-Dlog4j2.configurationFile={log_settings().as_uri()}")
    settings[_DRIVER] = " ".join(options)
    if not engine.is_local:
        # The processes of the workers, which do most of the work.
        settings[_EXECUTORS] = " ".join(_options_of_java(engine, settings, _EXECUTORS))
    conf = SparkConf(loadDefaults=False).setMaster(engine.master).setAppName("holdfast")
    conf.setAll([*settings.items()])
    # The output of Java and its launcher matters only if the start fails.
    with tempfile.TemporaryFile(prefix="holdfast-spark-") as said:
        try:
            with _later_ctrl_c():
                gateway = launch_gateway(conf, {"stdout": said, "stderr": said})  # type: ignore[no-untyped-call]
            with _same_ctrl_c():
                context = SparkContext(conf=conf, gateway=gateway)
            _silence(context)
            return SparkSession(context)
        except Exception as error:
            said.seek(0)
            words = f"{error}\n{said.read().decode('utf-8', 'replace')}".strip()
            # Java's own errors are short.
            reason = in_short(words) if "\tat " in words else words
            raise PipelineFailed(f"Spark does not start: {reason}") from error


def _options_of_java(engine: Engine, settings: Mapping[str, str], name: str) -> list[str]:
    """Return what Java is told where this setting applies; what users set has the last word."""
    given = settings.get(name, "")
    options = [_QUICK if engine.quick else _LONG]
    if "GC" not in given:
        # Throughput matters, not latency: this collector saves a tenth of the processor time.
        options.append("-XX:+UseParallelGC")
    return [*options, given] if given else options


def _silence(context: "SparkContext") -> None:
    """Keep threads that talk to Java from printing tracebacks when it dies; an error follows."""
    # Spark has no public access to it.
    server: Any = context._accumulatorServer
    server.handle_error = lambda *_: None
    # Without a handler, the first log message would create one that prints.
    logging.getLogger().addHandler(logging.NullHandler())


@contextmanager
def _later_ctrl_c() -> Iterator[None]:
    """Delay Ctrl-C: if the start of Java is interrupted, its process would run forever."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if heard:
        signal.raise_signal(signal.SIGINT)


@contextmanager
def _same_ctrl_c() -> Iterator[None]:
    """Keep our handler of Ctrl-C; Spark's own prints long tracebacks."""
    before = signal.getsignal(signal.SIGINT)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, before)


def _connect(engine: Engine) -> "SparkSession":
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    remote = cast("str", engine.remote)
    _knock(remote)
    try:
        builder = SparkSession.builder.remote(remote)
        for name, value in (_EVERYWHERE | dict(engine.settings)).items():
            builder = builder.config(name, value)
        return builder.getOrCreate()
    except (PySparkException, ImportError, OSError) as error:
        raise PipelineFailed(f"{remote}: {in_words(error)}") from error


def _knock(remote: str) -> None:
    """Check that the server answers; Spark's client would retry for ten minutes."""
    place = urlsplit(remote)
    try:
        address = (place.hostname or "localhost", place.port or _CONNECT_PORT)
        socket.create_connection(address, _TIMEOUT_S).close()
    except (OSError, ValueError) as error:
        raise PipelineFailed(f"{remote}: no Spark Connect server answers there ({error})") from None


def _prepare_python() -> None:
    try:
        import pyspark  # noqa: F401
    except ImportError:
        raise PipelineFailed(
            f"Spark is not installed. Tables are made without it with --engine local; to install "
            f"it: {install_command(WHOLE)}"
        ) from None
    # Spark warns of future changes in the libraries that it uses.
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")


def _cores(master: str) -> int:
    number = master.partition("[")[2].rstrip("]").partition(",")[0]
    if number == "*":
        return os.cpu_count() or 1
    return int(number) if number.isdecimal() else 1
