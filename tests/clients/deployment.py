"""A deployment that is restarted under traffic: `holdfast serve` below its supervisor."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from holdfast.cli.failures import Exit
from tests.chaos.processes import START_LIMIT_S
from tests.serving import (
    PROGRAM,
    STOP_LIMIT_S,
    Settings,
    as_toml,
    environment,
    kill_orphans_in,
)

# What has a tenth of a processor takes two minutes to import servers beside those that serve.
_RESTART_S = 240
_RESTART_LIMIT_S = 280.0


class Restart(NamedTuple):
    """When a restart began and ended, since the epoch."""

    begun_s: float
    ended_s: float


class Deployment:
    """A server that may be restarted; `url` has no path."""

    def __init__(self, home: Path, settings: Settings, packages: Path | None = None) -> None:
        """With `packages`, a folder, run the server in it instead of the sources."""
        self._home = home
        self._data = home / "data"
        self._settings: Settings = {"port": 0, "data": str(self._data), **settings}
        self._config = home / "holdfast.toml"
        self._environment = environment() if packages is None else environment(str(packages))
        self.configure()
        self._log = (home / "log").open("a+b")
        words = [*PROGRAM, "serve", "--supervisor", "--config", str(self._config)]
        self._process = subprocess.Popen(
            words,
            cwd=home,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        self.url = self._ready_url()
        # The supervisor's.
        self.pid = self._process.pid

    def configure(self, **changed: Any) -> None:
        """Give the servers that start from now on these settings beside the first ones."""
        self._config.write_text(as_toml({**self._settings, **changed}), "utf-8")

    def restart(self) -> Restart:
        """Let another server take over."""
        restart, code, said = self._ask_for_restart()
        assert code == 0, said
        return restart

    def fail_to_restart(self) -> tuple[Restart, str]:
        """Let a server fail to take over; returns what the operator sees."""
        restart, code, said = self._ask_for_restart()
        assert code == Exit.FAILED, said
        return restart, said

    def _ask_for_restart(self) -> tuple[Restart, int, str]:
        """Return the exit code of the command, and what it printed."""
        begun_s = time.time()
        done = subprocess.run(
            [*PROGRAM, "restart", "--data", self._data, "--timeout", str(_RESTART_S)],
            cwd=self._home,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_RESTART_LIMIT_S,
            check=False,
        )
        return Restart(begun_s, time.time()), done.returncode, done.stdout

    def log(self) -> str:
        return (self._home / "log").read_text("utf-8", "replace")

    def troubles(self) -> list[str]:
        """Lines of the log that an operator would look into."""
        levels = ('"level":"warning"', '"level":"error"')
        return [line for line in self.log().splitlines() if any(each in line for each in levels)]

    def stop(self) -> int:
        self._process.terminate()
        try:
            return self._process.wait(STOP_LIMIT_S)
        finally:
            self._process.kill()
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._log.close()
            kill_orphans_in(self._home)

    def _ready_url(self) -> str:
        output = self._process.stdout
        assert output is not None
        is_readable, _, _ = select([output], [], [], START_LIMIT_S)
        line = output.readline().decode() if is_readable else ""
        if "http" not in line:
            self.stop()
            raise RuntimeError(f"the server did not start: {line!r}\n{self.log()}")
        url = urlsplit(next(word for word in line.split() if "://" in word))
        return f"{url.scheme}://{url.netloc}"


@contextmanager
def deployed(home: Path, settings: Settings, packages: Path | None = None) -> Iterator[Deployment]:
    """A deployment that must stop in order."""
    deployment = Deployment(home, settings, packages)
    try:
        yield deployment
    except BaseException:
        deployment.stop()
        sys.stderr.write(deployment.log())
        raise
    assert deployment.stop() == 0, deployment.log()
