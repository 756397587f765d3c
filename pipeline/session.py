"""The Spark session: here, on a cluster, or far away behind Spark Connect."""

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
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from pipeline.class_archive import options_for_archive
from pipeline.failures import INSTALL, PipelineFailed, in_short, in_words
from pipeline.java import find_java
from pipeline.places import log_settings
from pipeline.python import python_for_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "local[*]"
_CONNECT_PORT = 15002
_PATIENCE_S = 10.0
MASTERS = ("local", "spark://", "k8s://")
# What keeps short work short, at the cost of a third of the speed of long work.
_QUICK = "-XX:TieredStopAtLevel=1"
# Else the second compiler is at work all the time, on what runs a few thousand times; what runs for
# every event gets there in a moment even so.
_LONG = (
    "-XX:Tier4InvocationThreshold=100000 -XX:Tier4MinInvocationThreshold=12000 "
    "-XX:Tier4CompileThreshold=300000 -XX:Tier4BackEdgeThreshold=800000"
)
_EVERYWHERE = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.parquet.compression.codec": "zstd",
    # Days and states are few: a file is open for each, and nothing need be sorted.
    "spark.sql.maxConcurrentOutputFileWriters": "16",
    # Sketches of so many hours and channels fit into memory: for them nothing need be sorted.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "4096",
    # So much, as it is packed, is put together in memory at once.
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "16m",
    # As others write it, and with half the work.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # What is told of a batch is told whole, or not at all.
    "spark.sql.sources.partitionOverwriteMode": "static",
}
# For each file and folder Java starts chmod, and readlink four times to give it another name. So
# files have neither sums nor marks beside them, which nobody reads, and get their names by a call.
_FILES = {
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing"
        ".FileSystemBasedCheckpointFileManager"
    ),
}
# Of much that is put together, for each core: each piece fits into memory.
_PIECES = 16
_HERE = {
    # Nobody looks where in the program a plan was made; a Spark far away cannot be told.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    # Files are near: each core gets its share, however small they are.
    "spark.sql.files.openCostInBytes": "262144",
    # A million events, packed as they are: what a task makes of them fits into memory.
    "spark.sql.files.maxPartitionBytes": "4m",
}


@dataclass(frozen=True, slots=True)
class Engine:
    """Where Spark computes.

    Args:
        quick: The work is short: rather begin soon than run fast.
        settings: What Spark is told besides; it wins over what is said here.
    """

    master: str = LOCAL
    remote: str | None = None
    quick: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.remote is not None and not self.remote.startswith("sc://"):
            raise PipelineFailed(f"{self.remote!r} is no remote Spark: write sc://HOST:15002")
        if not self.master.startswith(MASTERS):
            raise PipelineFailed(
                f"{self.master!r} is no master: write local[*], spark://HOST:7077 or k8s://URL"
            )

    @property
    def is_local(self) -> bool:
        return self.remote is None and self.master.startswith("local")


def open_session(engine: Engine) -> "SparkSession":
    """A session, which the caller stops.

    Raises:
        PipelineFailed: Spark or its Java is not there or does not start; the text says what to do.
    """
    _prepare_python()
    if engine.remote is not None:
        return _connect(engine)
    return _start(engine)


def settings_of(engine: Engine) -> dict[str, str]:
    """What Spark is told."""
    settings = {**_EVERYWHERE, **_FILES}
    if engine.is_local:
        # Of little, Spark makes fewer.
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
    # Else workers run whatever is called python3, which knows nothing of us. Those of a cluster may
    # have us elsewhere: whoever starts this knows where.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if engine.is_local:
        os.environ["PYSPARK_PYTHON"] = str(python_for_spark())
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings = settings_of(engine)
    given = settings.pop("spark.driver.extraJavaOptions", "")
    options = [given, *options_for_archive(java)]
    if "GC" not in given:
        # Nobody waits for a single answer; and a tenth of the processor time is saved.
        options.append("-XX:+UseParallelGC")
    # A directory for it on the class path would forbid the archive.
    options.append(f"-Dlog4j2.configurationFile={log_settings().as_uri()}")
    options.append(_QUICK if engine.quick else _LONG)
    settings["spark.driver.extraJavaOptions"] = " ".join(filter(None, options))
    conf = SparkConf(loadDefaults=False).setMaster(engine.master).setAppName("holdfast")
    conf.setAll([*settings.items()])
    # What Java and the launcher tell is of use only where it does not start.
    with tempfile.TemporaryFile(prefix="holdfast-spark-") as said:
        try:
            with _later_ctrl_c():
                gateway = launch_gateway(conf, {"stdout": said, "stderr": said})  # type: ignore[no-untyped-call]
            with _same_ctrl_c():
                context = SparkContext(conf=conf, gateway=gateway)
            return SparkSession(context)
        except Exception as error:
            said.seek(0)
            words = f"{error}\n{said.read().decode('utf-8', 'replace')}".strip()
            # Java itself says in few words what it cannot do.
            reason = in_short(words) if "\tat " in words else words
            raise PipelineFailed(f"Spark does not start: {reason}") from error


@contextmanager
def _later_ctrl_c() -> Iterator[None]:
    """A Java whose start is broken off would stay for ever, for nobody knows it yet."""
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
    """Spark's own way of dealing with it tells at length of whatever broke off."""
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
    """See whether somebody is there: the client of Spark would try again for ten minutes."""
    place = urlsplit(remote)
    try:
        address = (place.hostname or "localhost", place.port or _CONNECT_PORT)
        socket.create_connection(address, _PATIENCE_S).close()
    except (OSError, ValueError) as error:
        raise PipelineFailed(f"{remote}: no Spark Connect server answers there ({error})") from None


def _prepare_python() -> None:
    try:
        import pyspark  # noqa: F401
    except ImportError:
        raise PipelineFailed(f"the pipeline needs Spark: {INSTALL}") from None
    # Spark talks of changes to come in the libraries that it uses.
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")


def _cores(master: str) -> int:
    number = master.partition("[")[2].rstrip("]").partition(",")[0]
    if number == "*":
        return os.cpu_count() or 1
    return int(number) if number.isdecimal() else 1
