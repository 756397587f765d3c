"""Measures a process and its descendants: time, processor time and memory."""

import os
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from bench.processes import family

_TICKS = os.sysconf("SC_CLK_TCK")
# Linux adds up the pages of a process for each look at its memory.
_LOOK_S = 0.2
_PSS = "Pss:"


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds and bytes; each process counts its share of the pages that others have, too."""

    wall_s: float
    cpu_s: float
    peak_bytes: int
    said: str


def cpu_of(pid: int) -> float:
    """Return the processor seconds of a process and its descendants, with those that ended."""
    return sum(_ticks(member) for member in family(pid)) / _TICKS


def _ticks(pid: int) -> int:
    try:
        stat = Path("/proc", str(pid), "stat").read_text()
    except OSError:  # it ended meanwhile
        return 0
    return sum(map(int, stat.rpartition(")")[2].split()[11:15]))


def _bytes_of(pid: int) -> int:
    return sum(map(_kib, family(pid))) * 1024


def _kib(pid: int) -> int:
    try:
        sums = Path("/proc", str(pid), "smaps_rollup").read_text()
    except OSError:  # it ended meanwhile
        return 0
    return next((int(line.split()[1]) for line in sums.splitlines() if line.startswith(_PSS)), 0)


def run(words: Sequence[str]) -> Cost:
    """Run a command to its end; return its cost and its output, without its errors."""
    begin = perf_counter()
    process = subprocess.Popen([*words], stdout=subprocess.PIPE, text=True)
    cpu, peak = [0.0], [0]
    is_over = threading.Event()

    def look() -> None:
        while not is_over.wait(_LOOK_S):
            cpu[0] = max(cpu[0], cpu_of(process.pid))
            peak[0] = max(peak[0], _bytes_of(process.pid))

    watcher = threading.Thread(target=look)
    watcher.start()
    said, _ = process.communicate()
    wall = perf_counter() - begin
    is_over.set()
    watcher.join()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, words)
    return Cost(wall, cpu[0], peak[0], said)
