"""Real server processes for tests: one for each set of settings, started when it is asked for."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from select import select
from sysconfig import get_path
from typing import IO, Any
from urllib.parse import urlsplit

from tests import forking
from tests.forking import Forked, start

ROOT = forking.ROOT

# `make test` starts servers as they were installed, compiled if that is possible; whoever runs
# pytest by hand starts these sources. Extensions of tests are beside them.
_IS_INSTALLED = bool(os.environ.get("TEST_INSTALLED"))
_PATH = os.pathsep.join([get_path("purelib"), str(ROOT)]) if _IS_INSTALLED else str(ROOT)
PACKAGE = Path(get_path("purelib")) / "holdfast" if _IS_INSTALLED else ROOT / "app"
PROGRAM = (sys.executable, "-P", "-m", "holdfast")
START_LIMIT_S = 60.0
STOP_LIMIT_S = 60.0
# More than any test needs at once, and those that others have from beginning to end.
MOST_SERVERS = 8

Settings = Mapping[str, Any]


def kill_orphans_in(data: Path) -> None:
    """Kill the stores that killed servers left running in this directory."""
    for file in data.rglob("valkey.pid"):
        # It may have died while it wrote its number.
        with contextlib.suppress(ProcessLookupError, ValueError):
            os.kill(int(file.read_text()), signal.SIGKILL)


class Server:
    """A running `holdfast serve`; `url` has no path."""

    def __init__(
        self, settings: Settings, installed: Path | None = None, *, program: str = "holdfast"
    ) -> None:
        """With `installed`, a folder, run the server in it instead of the sources.

        Another program is a module of the tests that changes the sources.
        """
        self._home = tempfile.TemporaryDirectory(prefix="holdfast-test-")
        home = Path(self._home.name)
        config = home / "holdfast.toml"
        self.data = home / "data"
        config.write_text(as_toml({"port": 0, "data": str(self.data), **settings}), "utf-8")
        self._log: IO[bytes] = (home / "log").open("a+b")
        words = ("serve", "--config", str(config))
        variables = environment() if program == "holdfast" else environment(str(ROOT))
        self.process: Forked | subprocess.Popen[bytes] = (
            start(program, *words, environment=variables, cwd=ROOT, errors=self._log)
            if installed is None
            else subprocess.Popen(
                [*PROGRAM, *words],
                cwd=installed,
                env=environment(str(installed)),
                stdout=subprocess.PIPE,
                stderr=self._log,
            )
        )
        self.url = self._ready_url()

    def log(self) -> str:
        self._log.seek(0)
        return self._log.read().decode("utf-8", "replace")

    def stop(self) -> int:
        """End the process as an operator would, and return its exit code."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            code = self.process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._log.close()
        kill_orphans_in(Path(self._home.name))
        self._home.cleanup()
        return code

    def _ready_url(self) -> str:
        output = self.process.stdout
        assert output is not None
        is_readable, _, _ = select([output], [], [], START_LIMIT_S)
        line = output.readline().decode() if is_readable else ""
        if "http" not in line:
            log = self.log()
            self.stop()
            raise RuntimeError(f"the server did not start: {line!r}\n{log}")
        url = urlsplit(line.split()[-1])
        return f"{url.scheme}://{url.netloc}"


class Servers:
    """Servers by their settings.

    The one asked for longest ago ends when there are many: a server is never quite idle.
    """

    def __init__(self) -> None:
        self._running: dict[str, Server] = {}

    def with_settings(self, settings: Settings) -> Server:
        key = json.dumps(settings, sort_keys=True)
        server = self._running.pop(key, None)
        if server is None or server.process.poll() is not None:
            server = Server(settings)
        self._running[key] = server
        if len(self._running) > MOST_SERVERS:
            self._running.pop(next(iter(self._running))).stop()
        return server

    def stop(self) -> None:
        running = list(self._running.values())
        for server in running:
            server.process.terminate()
        for server in running:
            server.stop()


def environment(path: str = _PATH) -> dict[str, str]:
    """Our environment with the path of the program, and without settings but one.

    Tests of what a server does stop and kill the process that they start: it is to be the server.
    """
    known = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    return {**known, "PYTHONPATH": path, "HOLDFAST_SUPERVISOR": "off"}


def as_toml(settings: Settings) -> str:
    return "".join(f"{name} = {toml_value(value)}\n" for name, value in settings.items())


def toml_value(value: object) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(f"{json.dumps(key)} = {toml_value(item)}" for key, item in value.items())
        return f"{{{inner}}}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(map(toml_value, value))}]"
    return json.dumps(value)
