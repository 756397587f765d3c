"""What systemd is told, and what it gives; a test plays it."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.supervisor.stage import LIMIT_S, Stage, until

pytestmark = pytest.mark.slow  # each starts several processes


class Notified:
    """The socket that systemd listens on."""

    def __init__(self, stage: Stage) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        path = str(stage.home / "notify")
        self._socket.bind(path)
        self._socket.settimeout(LIMIT_S)
        stage.environment["NOTIFY_SOCKET"] = path
        self.stored: dict[str, int] = {}

    def next(self) -> dict[str, str]:
        """The next notification; what is stored or removed is done."""
        data, descriptors, _, _ = socket.recv_fds(self._socket, 4096, 8)
        said = dict(line.split("=", 1) for line in data.decode().splitlines())
        if "FDSTORE" in said:
            (self.stored[said["FDNAME"]],) = descriptors
        elif "FDSTOREREMOVE" in said and (old := self.stored.pop(said["FDNAME"], None)):
            os.close(old)
        return said

    def until(self, name: str) -> dict[str, str]:
        """The next notification that has this name."""
        while name not in (said := self.next()):
            pass
        return said

    def close(self) -> None:
        self._socket.close()
        for each in self.stored.values():
            os.close(each)


@pytest.fixture
def notified(stage: Stage) -> Iterator[Notified]:
    found = Notified(stage)
    yield found
    found.close()


def test_systemd_is_told_when_the_server_is_ready_and_when_it_stops(
    stage: Stage, notified: Notified
) -> None:
    pid = stage.start_and_wait()
    assert notified.until("READY") == {
        "READY": "1",
        "MAINPID": str(pid),
        "STATUS": "serving http://fake",
    }
    assert stage.stop() == 0
    assert notified.until("STOPPING") == {"STOPPING": "1"}


def test_systemd_keeps_the_listening_sockets(stage: Stage, notified: Notified) -> None:
    stage.start_and_wait()
    notified.until("READY")
    assert notified.stored.keys() == {"main.0", "control"}
    with socket.socket(fileno=os.dup(notified.stored["main.0"])) as kept:
        assert kept.getsockname() == str(stage.home / "main.0")


def test_a_restart_is_a_reload_to_systemd(stage: Stage, notified: Notified) -> None:
    stage.start_and_wait()
    notified.until("READY")
    before = time.monotonic_ns() // 1000
    os.kill(stage.process.pid, signal.SIGHUP)
    said = notified.until("RELOADING")
    assert before <= int(said["MONOTONIC_USEC"]) <= time.monotonic_ns() // 1000
    assert notified.until("READY")["MAINPID"] == str(stage.process.pid)
    assert stage.stop() == 0
    notified.until("STOPPING")
    assert notified.stored.keys() == {"main.0", "control"}


def test_systemd_is_told_why_a_restart_failed(stage: Stage, notified: Notified) -> None:
    stage.start_and_wait()
    notified.until("READY")
    stage.plan(prepared="fail")
    assert "failed" in stage.restart()[-1]
    notified.until("RELOADING")
    said = notified.until("READY")
    assert said["STATUS"] == "the restart has failed: the test wants it"


def test_a_restart_may_fail_for_a_reason_of_any_text(stage: Stage, notified: Notified) -> None:
    pid = stage.start_and_wait()
    notified.until("READY")
    stage.plan(prepared="fail", why="a file\n\udcff\nMAINPID=1\n" + "x" * 10_000)
    assert stage.restart()[-1]["failed"].startswith("a file\n\udcff\n")
    said = notified.until("READY")
    assert said.keys() == {"READY", "STATUS"}
    assert said["STATUS"].startswith("the restart has failed: a file \\udcff MAINPID=1 xxx")
    assert stage.process.pid == pid
    assert stage.stop() == 0


def test_the_watchdog_is_fed_while_the_server_is_heard(stage: Stage, notified: Notified) -> None:
    stage.environment["WATCHDOG_USEC"] = "400000"
    stage.constants(running={"TICK_S": 0.1}, watching={"SILENT_S": 2.0})
    began = time.monotonic()
    stage.start_and_wait()
    server = stage.who()["pid"]
    notified.until("READY")
    # Some may have been on their way for long, so this counts from the start.
    for _ in range(8):
        assert notified.until("WATCHDOG") == {"WATCHDOG": "1"}
    assert time.monotonic() - began > 0.7
    os.kill(server, signal.SIGSTOP)
    until(lambda: "has said nothing" in stage.log())
    notified._socket.settimeout(0.8)
    with pytest.raises(TimeoutError):
        notified.until("nothing")
    notified._socket.settimeout(LIMIT_S)
    os.kill(server, signal.SIGCONT)
    notified.until("WATCHDOG")


def test_a_watchdog_of_another_process_is_not_fed(stage: Stage, notified: Notified) -> None:
    stage.environment |= {"WATCHDOG_USEC": "100000", "WATCHDOG_PID": "1"}
    stage.constants(running={"TICK_S": 0.1})
    stage.start_and_wait()
    notified.until("READY")
    notified._socket.settimeout(0.5)
    with pytest.raises(TimeoutError):
        notified.next()


# Starts a program with sockets as systemd does; the words are their names, then the program.
ACTIVATE = """
import os, socket, sys
names, words = sys.argv[1].split(":"), sys.argv[2:]
ends = [socket.socket(socket.AF_UNIX) for _ in names]
for place, (each, name) in enumerate(zip(ends, names)):
    each.bind(name)
    each.listen()
for each in ends:
    each.set_inheritable(True)
assert [each.fileno() for each in ends] == [*range(3, 3 + len(ends))]
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": str(len(ends))}
os.environ["LISTEN_FDNAMES"] = os.environ.pop("NAMES", ":".join(names))
os.execv(words[0], words)
"""


@pytest.mark.parametrize(
    ("names", "given"),
    [
        ("main.0:control", ["control", "main.0"]),
        ("holdfast.socket", ["main.0"]),
        ("unknown:main.0", ["main.0", "main.1"]),
        ("admin.0:one:two", ["admin.0", "main.0", "main.1"]),
    ],
)
def test_sockets_that_systemd_gives_are_those_of_the_server(
    stage: Stage, names: str, given: list[str]
) -> None:
    stage.start(sys.executable, "-c", ACTIVATE, names)
    assert stage.process.stdout is not None
    assert stage.process.stdout.readline() == "holdfast is ready: http://fake\n", stage.log()
    assert stage.notes() == [f"started {given}"]
    assert stage.stop() == 0


def test_sockets_for_another_process_are_not_taken(stage: Stage) -> None:
    stage.environment |= {"LISTEN_PID": "1", "LISTEN_FDS": "1"}
    stage.start_and_wait()
    assert stage.notes() == ["started []"]


def test_servers_know_nothing_of_systemd(stage: Stage, notified: Notified) -> None:
    stage.environment["WATCHDOG_USEC"] = "60000000"
    stage.start_and_wait()
    known = subprocess.run(
        ["cat", f"/proc/{stage.parent_of(stage.who()['pid'])}/environ"],
        capture_output=True,
        check=True,
    ).stdout
    assert b"FAKE_HOME=" in known
    assert b"NOTIFY_SOCKET" not in known
    assert b"WATCHDOG" not in known
