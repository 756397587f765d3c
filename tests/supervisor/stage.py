"""A supervisor with servers of a plan, in processes of their own."""

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from holdfast.supervisor.asking import ask
from holdfast.supervisor.control import CONTROL_FILE, Do, socket_for_commands
from tests.pages import ROOT
from tests.slowness import times_slower

LIMIT_S = 60.0
# For a restart in which something hangs: longer than all the rest takes, where much else runs.
HANGING_S = min(5.0 * times_slower(), 10.0)
_MAIN = """\
import json, os, sys
from importlib import import_module
# Shorter times, and other versions, than those of the code.
with open(os.environ["FAKE_HOME"] + "/constants.json") as file:
    for module, values in json.load(file).items():
        vars(import_module("holdfast.supervisor." + module)).update(values)
from holdfast.supervisor.entry import enter
def load(count):
    __import__("holdfast.fake_server")
    with open(os.environ["FAKE_HOME"] + "/loaded", "a") as file:
        file.write(f"{count} ")
enter(sys.argv[2:], load)
from holdfast.fake_server import serve
serve()
"""


class Stage:
    """A folder with a package `holdfast`, a plan, and what its servers note down."""

    def __init__(self, home: Path) -> None:
        self.home = home
        package = home / "packages" / "holdfast"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "supervisor").symlink_to(ROOT / "app" / "supervisor")
        (package / "fake_server.py").symlink_to(Path(__file__).with_name("fake_server.py"))
        (package / "__main__.py").write_text(_MAIN)
        self.main = package / "__main__.py"
        self.python = sys.executable
        self.environment = {
            name: each for name, each in os.environ.items() if not name.startswith("HOLDFAST_")
        }
        self.environment |= {"PYTHONPATH": str(package.parent), "FAKE_HOME": str(home)}
        self.processes: list[subprocess.Popen[str]] = []
        self.plan()
        self.constants()

    def plan(self, **steps: object) -> None:
        # At once, for a server that starts meanwhile.
        new = self.home / "plan.json.new"
        new.write_text(json.dumps(steps))
        new.rename(self.home / "plan.json")

    def let_go_on(self) -> None:
        """Let those go on whose plan says that they wait."""
        (self.home / "go on").touch()

    def constants(self, **by_module: dict[str, float]) -> None:
        """Programs that start from now on have these constants of the supervisor."""
        (self.home / "constants.json").write_text(json.dumps(by_module))

    def start(self, *before: str, terminal: int | None = None, errors: int | None = None) -> int:
        """Start a supervisor; returns its pid. It is the last of `processes`."""
        with (self.home / "log").open("a") as log:
            process = subprocess.Popen(
                [*before, self.python, "-P", "-m", "holdfast", "serve", "--supervisor"],
                cwd=self.home,
                env=self.environment,
                stdout=subprocess.PIPE,
                stderr=log if errors is None else errors,
                text=True,
                start_new_session=True,
                stdin=subprocess.DEVNULL if terminal is None else terminal,
                preexec_fn=None if terminal is None else _take_terminal,
            )
        self.processes.append(process)
        return process.pid

    def start_and_wait(self, errors: int | None = None) -> int:
        pid = self.start(errors=errors)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "holdfast is ready: http://fake\n", self.log()
        # Then the supervisor has heard all that the server said before.
        assert "failed" in self.ask(do="nothing")[-1]
        return pid

    @property
    def process(self) -> subprocess.Popen[str]:
        return self.processes[-1]

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(LIMIT_S)

    def log(self) -> str:
        return (self.home / "log").read_text()

    def notes(self) -> list[str]:
        """What servers noted down, without their pids."""
        with suppress(FileNotFoundError):
            lines = (self.home / "notes").read_text().splitlines()
            return [line.partition(" ")[2] for line in lines]
        return []

    def who(self) -> dict[str, Any]:
        """Ask whoever serves which process it is, and of which code."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(LIMIT_S)
            client.connect(str(self.home / "main.0"))
            found: dict[str, Any] = json.loads(client.recv(1000))
            return found

    def pid_of_server(self) -> int:
        """The one that listens, although it may accept nobody yet."""
        found: int = json.loads((self.home / "serving.0").read_text())["pid"]
        return found

    def ask(self, **request: object) -> list[dict[str, Any]]:
        """Send a command; returns all lines of the answer."""
        return [*self.asking(**request)]

    def asking(self, **request: object) -> Iterator[dict[str, Any]]:
        """Send a command; yields the lines of the answer when they arrive."""
        return ask(self.home / CONTROL_FILE, **request)

    def restart(self, **more: object) -> list[dict[str, Any]]:
        return self.ask(do=Do.RESTART, **more)

    def send(self, data: bytes) -> None:
        """Send to the socket for commands what may be no command."""
        with socket_for_commands() as client:
            client.sendto(data, str(self.home / CONTROL_FILE))

    def parent_of(self, pid: int) -> int:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

    def family(self) -> list[int]:
        """The pids of all that runs in the sessions of these supervisors."""
        found = []
        sessions = {process.pid for process in self.processes}
        for entry in Path("/proc").iterdir():
            with suppress(OSError, ValueError, IndexError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) in sessions and fields[0] != "Z":
                    found.append(int(entry.name))
        return found

    def close(self) -> None:
        for process in self.processes:
            if process.stdout is not None:
                process.stdout.close()
        for pid in self.family():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in self.processes:
            process.wait()


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def until(is_so: Callable[[], object], limit_s: float = LIMIT_S) -> None:
    """Wait for something that nobody tells."""
    end = time.monotonic() + limit_s
    while not is_so():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)
