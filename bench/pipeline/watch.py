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
_PAGE = os.sysconf("SC_PAGE_SIZE")
_LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds and bytes; memory that processes share counts for each."""

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
    total = 0
    for member in family(pid):
        try:
            total += int(Path("/proc", str(member), "statm").read_text().split()[1])
        except OSError:  # it ended meanwhile
            continue
    return total * _PAGE


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
