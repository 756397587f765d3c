"""Starts a server under test on a free port, checks by pid that it listens, and stops it."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.request import urlopen

from bench.plan import BENCH, ROOT, ServerSpec

READY_TIMEOUT_S = 60.0
# The work of a server just after its start does not count.
SETTLE_S = 0.5
STOP_TIMEOUT_S = 2.5
LOOK_S = 0.05

LISTEN = "0A"


class ServerFailed(Exception):
    """The server did not start."""


@dataclass(frozen=True, slots=True)
class Server:
    url: str
    pids: list[int]
    # Its folder, which is deleted when the server stops.
    data: str


@contextmanager
def reserved_port(address: str = "127.0.0.1") -> Iterator[int]:
    """A port that only those take who are told its number.

    A socket that does not listen is bound to it: at this address, or with 0.0.0.0 at all of them.
    Linux then gives the port neither to a program that asks for any port nor to a connection.
    Servers may still listen there, because they let others reuse their address.
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind((address, 0))
        yield holder.getsockname()[1]


def parents() -> dict[int, int]:
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path("/proc", entry, "stat").read_text()
            except OSError:  # it ended meanwhile
                continue
            found[int(entry)] = int(stat.rpartition(")")[2].split()[1])
    return found


def family(pid: int) -> list[int]:
    """Return the process and all its descendants."""
    parent_of = parents()
    members, todo = [], [pid]
    while todo:
        member = todo.pop()
        if member in parent_of:
            members.append(member)
            todo += [child for child, parent in parent_of.items() if parent == member]
    return members


def without_stores(pids: Iterable[int]) -> list[int]:
    """Return the processes that are no Valkey."""
    return [pid for pid in pids if b"valkey" not in Path(f"/proc/{pid}/cmdline").read_bytes()]


def listening_sockets(port: int) -> set[str]:
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if not os.path.exists(table):
            continue
        for line in Path(table).read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == LISTEN and int(words[1].rpartition(":")[2], 16) == port:
                found.add(f"socket:[{words[9]}]")
    return found


def open_files(pid: int) -> Iterator[str]:
    try:
        for entry in os.scandir(f"/proc/{pid}/fd"):
            yield os.readlink(entry.path)
    except OSError:  # the process ended or closed the file meanwhile
        return


def is_listening(port: int, pids: Iterable[int]) -> bool:
    """Return whether one of these processes listens there, and not some other program."""
    sockets = listening_sockets(port)
    return any(file in sockets for pid in pids for file in open_files(pid))


def answers(url: str) -> bool:
    """Return whether there is an answer that is no error."""
    try:
        urlopen(url, timeout=5).close()  # noqa: S310
    except OSError:
        return False
    return True


@contextmanager
def running(spec: ServerSpec, *, cpus: str, log: Path) -> Iterator[Server]:
    """Run a new server, pinned to `cpus`, until the block ends."""
    with (
        tempfile.TemporaryDirectory() as data,
        started(spec, data, cpus=cpus, log=log) as server,
    ):
        time.sleep(SETTLE_S)
        # It may listen before it has made all its processes.
        yield replace(server, pids=family(server.pids[0]))


@contextmanager
def started(spec: ServerSpec, data: str, *, cpus: str, log: Path) -> Iterator[Server]:
    """Run a server with the data of an earlier one; return it when it listens."""
    with log.open("ab") as out, reserved_port() as port:
        places = {
            "port": port,
            "data": data,
            "python": sys.executable,
            "root": ROOT,
            "bench": BENCH,
        }
        process = subprocess.Popen(
            ["taskset", "-c", cpus, *(word.format(**places) for word in spec.cmd)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=os.environ | {name: text.format(**places) for name, text in spec.env.items()},
            cwd=spec.cwd.format(**places),
            start_new_session=True,
        )
        try:
            wait_until_ready(process, port, spec.ready.format(**places), log)
            yield Server(spec.url.format(**places), family(process.pid), data)
        finally:
            stop(process)


def wait_until_ready(process: subprocess.Popen[bytes], port: int, ready: str, log: Path) -> None:
    deadline = time.monotonic() + READY_TIMEOUT_S
    while not (is_listening(port, family(process.pid)) and (not ready or answers(ready))):
        if process.poll() is not None or time.monotonic() > deadline:
            raise ServerFailed(f"it did not start; see {log}")
        time.sleep(LOOK_S)


def stop(process: subprocess.Popen[bytes]) -> None:
    pids = family(process.pid)
    for kind in (signal.SIGTERM, signal.SIGKILL):
        for pid in pids:
            send(pid, kind)
        if are_gone(process, pids):
            return


def send(pid: int, kind: signal.Signals) -> None:
    try:
        os.kill(pid, kind)
    except ProcessLookupError:
        pass


def are_gone(process: subprocess.Popen[bytes], pids: Iterable[int]) -> bool:
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while time.monotonic() < deadline:
        ended = process.poll() is not None
        if ended and not any(os.path.exists(f"/proc/{pid}") for pid in pids if pid != process.pid):
            return True
        time.sleep(LOOK_S)
    return False
