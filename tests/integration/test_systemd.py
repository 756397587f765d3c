"""The units in deploy/ below a systemd of their own: as operations.md and upgrading.md say."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tests.serving import ROOT, environment

pytestmark = pytest.mark.slow

LIMIT_S = 60.0
SERVICE, SOCKET = "holdfast.service", "holdfast.socket"
UNITS_OF_SYSTEMD = Path("/usr/lib/systemd/user")
# What units need by default.
TARGETS = ["basic", "sockets", "timers", "paths", "exit", "shutdown"]
# Here nobody may become another user, and programs are those of this environment.
CHANGED_SERVICE = """
[Service]
User=
StateDirectory=
UnsetEnvironment=HOLDFAST_SUPERVISOR
Environment=PYTHONPATH={path} HOLDFAST_PORT={port}
StandardOutput=append:{home}/log
StandardError=append:{home}/log
LimitCORE=0
WatchdogSec=10s
TimeoutAbortSec=1s
ProtectProc=default
{shown}
"""
# What changes the files that a process sees is left to the manager of a system: the environment may
# be at home, and the manager's own socket in /tmp.
SHOWN = "\n".join(
    f"{each}=no"
    for each in (
        *("ProtectSystem", "ProtectHome", "ProtectHostname", "ProtectClock"),
        *("ProtectControlGroups", "ProtectKernelLogs", "ProtectKernelModules"),
        *("ProtectKernelTunables", "PrivateTmp", "PrivateDevices"),
    )
)
CHANGED_SOCKET = """
[Socket]
ListenStream=
ListenStream=127.0.0.1:{port}
"""
# Process 1 of a container, in which it is root of a control group, and alone sees what it mounts.
# The manager is that of a user, because one of a system wants to be process 1 and does more.
BOOT = """
set -e
mount -t cgroup2 none /sys/fs/cgroup
mount -t proc none /proc
for each in {hidden}; do mount -t tmpfs none $each; done
mkdir -p /run/systemd/system
mkdir -m 700 /var/lib/holdfast
ln -s {environment} /opt/holdfast
{systemd} --user --unit=basic.target &
wait
"""
HIDDEN = ("/run", "/opt", "/var/lib")
CONTAINER = (
    *("unshare", "--user", "--map-root-user", "--pid", "--mount", "--cgroup"),
    *("--fork", "--kill-child"),
)


def groups() -> Path | None:
    """The directory of control groups, if there is one of the second version."""
    with suppress(OSError):
        for line in Path("/proc/self/mounts").read_text().splitlines():
            _, place, kind, *_ = line.split()
            if kind == "cgroup2":
                return Path(place)
    return None


class Group:
    """A control group for what a test starts."""

    def __init__(self, name: str) -> None:
        place = groups()
        assert place is not None
        self.path = place / f"holdfast-{name}-{os.getpid()}"
        self.path.mkdir()

    def start(self, *words: str, output: Path, **variables: str) -> subprocess.Popen[bytes]:
        enter = f'echo $$ > "{self.path}/cgroup.procs" && exec "$@"'
        with output.open("wb") as file:
            return subprocess.Popen(
                ["sh", "-c", enter, "sh", *CONTAINER, *words],
                env={**environment(), **variables},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )

    def close(self) -> None:
        """Kill everything in it, and remove it."""
        with suppress(OSError):
            (self.path / "cgroup.kill").write_text("1")
        ends = time.monotonic() + LIMIT_S
        for folder, *_ in os.walk(self.path, topdown=False):
            while time.monotonic() < ends:
                with suppress(OSError):
                    os.rmdir(folder)
                    break
                time.sleep(0.01)


def can_boot() -> bool:
    """Whether systemd is here, and may run in a container of its own."""
    if shutil.which("systemd") is None or shutil.which("unshare") is None:
        return False
    try:
        group = Group("trial")
    except (AssertionError, OSError):
        return False
    try:
        trial = "mount -t cgroup2 none /sys/fs/cgroup"
        for each in HIDDEN:
            trial += f" && mount -t tmpfs none {each}"
        # This program may be below one of them.
        trial += f" && {sys.prefix}/bin/holdfast --version"
        return group.start("sh", "-c", trial, output=Path(os.devnull)).wait() == 0
    finally:
        group.close()


class Systemd:
    """A manager of services with the units in deploy/."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._cookie = ""
        (home / "run").mkdir()
        self._units = home / "units"
        self._units.mkdir()
        for each in (*(f"{name}.target" for name in TARGETS), "systemd-exit.service", "app.slice"):
            shutil.copy(UNITS_OF_SYSTEMD / each, self._units)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        path = environment()["PYTHONPATH"]
        about = {"home": home, "port": self._port, "path": path, "shown": SHOWN}
        for unit, changed in {SERVICE: CHANGED_SERVICE, SOCKET: CHANGED_SOCKET}.items():
            shutil.copy(ROOT / "deploy" / unit, self._units)
            (self._units / f"{unit}.d").mkdir()
            (self._units / f"{unit}.d" / "here.conf").write_text(changed.format_map(about))
        self._variables = {
            "XDG_RUNTIME_DIR": str(home / "run"),
            "HOME": str(home),
            "SYSTEMD_UNIT_PATH": str(self._units),
        }
        self._group = Group("test")
        boot = BOOT.format(
            hidden=" ".join(HIDDEN), environment=sys.prefix, systemd=shutil.which("systemd")
        )
        words = ("sh", "-c", boot)
        self._process = self._group.start(*words, output=home / "systemd", **self._variables)

    def until(self, is_so: Callable[[], object]) -> None:
        """Wait for something that nobody tells."""
        ends = time.monotonic() + LIMIT_S
        while not is_so():
            assert self._process.poll() is None, self.said()
            assert time.monotonic() < ends, self.said()
            time.sleep(0.05)

    def said(self) -> str:
        return (self.home / "systemd").read_text()

    @contextmanager
    def settings(self, text: str) -> Iterator[None]:
        """Have servers that start read these settings."""
        file = "/var/lib/holdfast/holdfast.toml"
        self._inside("sh", "-c", f"echo '{text}' > {file}")
        try:
            yield
        finally:
            self._inside("rm", file)

    def processes(self) -> list[str]:
        """The processes of the service, those that it has left behind among them."""
        found = self._inside("sh", "-c", "cat /proc/[0-9]*/cgroup")
        return [line for line in found.stdout.splitlines() if SERVICE in line]

    def servers(self) -> list[str]:
        """The pids of the servers, as the container has them."""
        importers = "/proc/{0}/task/{0}/children".format(self.shown("MainPID"))
        script = f"for each in $(cat {importers}); do cat /proc/$each/task/$each/children; done"
        return self._inside("sh", "-c", script).stdout.split()

    def signal(self, name: str, *pids: str) -> None:
        self._inside("kill", "-s", name, *pids)

    def call(self, *words: str) -> int:
        """Return the exit code of `systemctl`."""
        return self._systemctl(*words).returncode

    def shown(self, name: str) -> str:
        """Return a property of the service."""
        return self._systemctl("show", SERVICE, "--value", "--property", name).stdout.strip()

    def log(self) -> str:
        return (self.home / "log").read_text()

    def answer(self) -> str:
        """What the address of the server answers; it may take as long as a start."""
        with closing(HTTPConnection("127.0.0.1", self._port, timeout=LIMIT_S)) as connection:
            connection.request("GET", "/readyz")
            return connection.getresponse().read().decode().strip()

    def ask(self, **message: object) -> dict[str, Any]:
        """Send a Bayeux message; returns its reply."""
        with closing(HTTPConnection("127.0.0.1", self._port, timeout=LIMIT_S)) as connection:
            headers = {"Content-Type": "application/json", "Cookie": self._cookie}
            connection.request("POST", "/cometd", json.dumps([message]), headers)
            response = connection.getresponse()
            self._cookie = response.headers.get("Set-Cookie", self._cookie).partition(";")[0]
            *_, reply = json.loads(response.read())
            found: dict[str, Any] = reply
            return found

    def close(self) -> None:
        self._group.close()
        self._process.wait()

    def _systemctl(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self._inside("systemctl", "--user", *words)

    def _inside(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a program in the container: systemd listens to processes that it can see."""
        pid = self._process.pid
        first = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return subprocess.run(
            ["nsenter", "--user", "--mount", "--pid", "--target", *first, *words],
            env={**environment(), **self._variables},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )


@pytest.fixture(scope="module")
def booted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Systemd]:
    # A path to a socket must be short.
    systemd = Systemd(tmp_path_factory.mktemp("sd"))
    try:
        systemd.until(lambda: systemd.call("is-active", "basic.target") == 0)
        yield systemd
    finally:
        systemd.close()


@pytest.fixture
def systemd(booted: Systemd) -> Systemd:
    """One that runs the service."""
    assert booted.call("start", SOCKET, SERVICE) == 0, booted.log()
    return booted


# Elsewhere they do not exist, because CI takes a skip for a fault of its machine.
if can_boot():

    def test_the_service_is_active_when_the_server_is_ready(systemd: Systemd) -> None:
        assert systemd.shown("ActiveState") == "active"
        assert systemd.shown("StatusText").startswith("serving ")
        # The address, and the socket for commands.
        assert systemd.shown("NFileDescriptorStore") == "2"
        assert systemd.answer() == "ready"

    def test_a_reload_is_a_restart_that_keeps_the_main_process(systemd: Systemd) -> None:
        pid = systemd.shown("MainPID")
        before = systemd.log().count("the restart is done")
        assert systemd.call("reload", SERVICE) == 0
        # Systemd is told a moment before.
        systemd.until(lambda: systemd.log().count("the restart is done") == before + 1)
        assert systemd.shown("MainPID") == pid
        assert systemd.shown("ActiveState") == "active"
        assert systemd.answer() == "ready"

    def test_a_reload_that_fails_says_why_and_the_server_goes_on(systemd: Systemd) -> None:
        pid = systemd.shown("MainPID")
        with systemd.settings("max_quue = 3"):
            assert systemd.call("reload", SERVICE) != 0
        why = "max_quue: this setting does not exist: did you mean max_queue?"
        assert systemd.shown("StatusText") == f"the restart has failed: {why}"
        assert systemd.shown("ActiveState") == "active"
        assert systemd.shown("MainPID") == pid
        assert systemd.answer() == "ready"
        assert systemd.call("reload", SERVICE) == 0

    def test_sessions_go_on_when_a_killed_supervisor_is_followed_by_another(
        systemd: Systemd,
    ) -> None:
        pid, restarts = systemd.shown("MainPID"), int(systemd.shown("NRestarts"))
        ways = ["long-polling"]
        known = systemd.ask(
            channel="/meta/handshake", version="1.0", supportedConnectionTypes=ways
        )["clientId"]
        servers = systemd.servers()
        # It can store nothing before systemd has seen the end of the supervisor.
        systemd.signal("STOP", *servers)
        assert systemd.call("kill", "--kill-whom=main", "--signal=KILL", SERVICE) == 0
        systemd.until(lambda: systemd.shown("MainPID") != pid)
        systemd.signal("CONT", *servers)
        systemd.until(lambda: int(systemd.shown("NRestarts")) == restarts + 1)
        assert systemd.answer() == "ready"
        # The server before had the time to store what it had in memory.
        about = {"clientId": known, "connectionType": ways[0], "advice": {"timeout": 0}}
        reply = systemd.ask(channel="/meta/connect", **about)
        assert reply["successful"], (reply, systemd.log())

    def test_clients_wait_while_a_killed_supervisor_and_its_frozen_server_are_followed_by_others(
        systemd: Systemd,
    ) -> None:
        pid, restarts = systemd.shown("MainPID"), int(systemd.shown("NRestarts"))
        [frozen] = systemd.servers()
        systemd.signal("STOP", frozen)
        assert systemd.call("kill", "--kill-whom=main", "--signal=KILL", SERVICE) == 0
        assert systemd.answer() == "ready"
        systemd.until(lambda: int(systemd.shown("NRestarts")) == restarts + 1)
        assert systemd.shown("MainPID") != pid
        assert frozen not in systemd.servers()

    def test_a_supervisor_that_freezes_is_killed_by_the_watchdog(systemd: Systemd) -> None:
        fed, restarts = systemd.shown("WatchdogTimestamp"), systemd.shown("NRestarts")
        systemd.until(lambda: systemd.shown("WatchdogTimestamp") != fed)
        assert systemd.call("kill", "--kill-whom=main", "--signal=STOP", SERVICE) == 0
        systemd.until(lambda: systemd.shown("NRestarts") != restarts)
        assert systemd.answer() == "ready"

    def test_a_stop_is_in_order_and_leaves_nothing_running(systemd: Systemd) -> None:
        assert systemd.call("stop", SOCKET, SERVICE) == 0
        assert systemd.shown("ActiveState") == "inactive"
        assert systemd.shown("Result") == "success"
        assert systemd.processes() == []

    def test_a_server_that_cannot_start_is_not_started_again(systemd: Systemd) -> None:
        systemd.call("stop", SOCKET, SERVICE)
        with systemd.settings("max_quue = 3"):
            assert systemd.call("start", SERVICE) != 0
        assert systemd.shown("ActiveState") == "failed"
        assert systemd.shown("ExecMainStatus") == "2"
        assert systemd.shown("NRestarts") == "0"
        assert systemd.processes() == []
