"""Ingests that are killed, one after the other, each some time after its first batch.

The first loses one process that does its work, begins again with the same Java, and loses that some
time later. The next is killed with its Java and all of its processes in Python, while Spark writes
to the log of its query, and so on. HOLDFAST_KILLS says how many kills; by default one of each.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.processes import family
from holdfast.pipeline.lake import Lake
from tests.pipeline.journals import Writer
from tests.serving import ROOT
from tests.store.servers import ValkeyServer
from tests.unit.pipeline.events import event
from tests.unit.pipeline.stories import the_story

# Longer than a batch takes.
_LONGEST_S = 3.0
_TIMEOUT_S = 100.0


class Victim(Enum):
    """What is killed; the value is in the command line, if that is a single process."""

    WORKER = "holdfast.pipeline.workers"
    JAVA = "org.apache.spark.deploy.SparkSubmit"
    # All, while Spark writes to the log of its query.
    LOG = "log"


KILLS = int(os.environ.get("HOLDFAST_KILLS", len(Victim)))


class Doomed:
    """A journal with ingests of it, which are started and killed while other tests run."""

    def __init__(self, kills: int) -> None:
        # So many that no ingest comes to their end.
        more = (event("session", 100 + n, receiver="joe/1", what="left") for n in range(24 * kills))
        self.events = [*the_story(), *more]
        self.killed = 0
        self._kills = kills
        self._most = max(2, len(self.events) // (8 * kills))
        self._failure = ""
        # Tests that run meanwhile change ours.
        self._environment = dict(os.environ)
        self._thread = threading.Thread(target=self._kill_all)

    def __enter__(self) -> Self:
        self._home = tempfile.TemporaryDirectory(prefix="holdfast-test-")
        self.lake = Lake(Path(self._home.name) / "lake")
        self.store = ValkeyServer()
        Writer(self.store).write_all(self.events, each=2)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.wait()
        self.store.close()
        self._home.cleanup()

    def wait(self) -> str:
        """Wait until all are killed; how one failed before it could be killed, or nothing."""
        self._thread.join()
        return self._failure

    def _kill_all(self) -> None:
        while self.killed < self._kills and not self._failure:
            self._kill_one()

    def _kill_one(self) -> None:
        words = (self.store.url, self.lake.root, self._most)
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.pipeline.mortal_ingest", *map(str, words)],
            cwd=ROOT,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        assert process.stdout is not None
        with process.stdout as said:
            # Its first batch is in the tables.
            line = said.readline()
            if not line.startswith(b"IngestProgress"):
                self._failure = (line + said.read()).decode() or "it said nothing"
            # Nobody reads what else it says, which is little.
            while process.poll() is None and self.killed < self._kills:
                self._kill(process)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(_TIMEOUT_S)

    def _kill(self, process: "subprocess.Popen[bytes]") -> None:
        """Kill the next victim. The ingest outlives a worker, and ends by itself without Java."""
        time.sleep(random.uniform(0, _LONGEST_S))
        victims = [*Victim]
        victim = victims[self.killed % len(victims)]
        if victim in (Victim.JAVA, Victim.WORKER):
            found = [pid for pid in family(process.pid) if victim.value in _words(pid)]
            # The last is the youngest: a process that works, and not the one that forked it.
            os.kill(found[-1], signal.SIGKILL)
        elif victim is Victim.LOG and not _writes_log(self.lake.root / "_checkpoint"):
            self._failure = "Spark wrote nothing to the log of its query"
        if victim is Victim.LOG:
            os.killpg(process.pid, signal.SIGKILL)
        if victim is not Victim.WORKER:
            process.wait(_TIMEOUT_S)
        self.killed += 1


def _writes_log(checkpoint: Path) -> bool:
    """Wait until Spark writes a file of its query's log, which has another name meanwhile."""
    deadline = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < deadline:
        if any(checkpoint.glob("*/.*.tmp")):
            return True
    return False


def _words(pid: int) -> str:
    try:
        return Path("/proc", str(pid), "cmdline").read_text()
    except OSError:  # it ended meanwhile
        return ""
