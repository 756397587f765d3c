"""`holdfast serve` as a process with any arguments, which may also fail."""

import contextlib
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from select import select

import orjson

from tests.forking import Forked, start
from tests.serving import PROGRAM, START_LIMIT_S, environment, kill_orphans_in

STOP_LIMIT_S = 60.0


class Program:
    """A server process that may fail to start; its output and its exit code."""

    def __init__(
        self,
        *arguments: str,
        home: Path,
        variables: Mapping[str, str] | None = None,
        stdout: int = subprocess.PIPE,
        files: int | None = None,
    ) -> None:
        """With `files`, limit the process to so many descriptors."""
        self._home = home
        self._errors = (home / "stderr").open("w+b")
        known = {**environment(), **(variables or {})}
        if files is None and stdout == subprocess.PIPE:
            self.process: Forked | subprocess.Popen[bytes] = start(
                *("holdfast", "serve", *arguments),
                environment=known,
                cwd=home,
                errors=self._errors,
                has_session=True,
            )
            return
        limit = () if files is None else ("sh", "-c", f'ulimit -n {files}; exec "$0" "$@"')
        self.process = subprocess.Popen(
            [*limit, *PROGRAM, "serve", *arguments],
            cwd=home,
            env=known,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            start_new_session=True,
            stderr=self._errors,
        )

    def ready_line(self) -> str:
        """The line that it prints when it is ready; empty if it ends instead."""
        assert self.process.stdout is not None
        readable, _, _ = select([self.process.stdout], [], [], START_LIMIT_S)
        return self.process.stdout.readline().decode() if readable else ""

    def place(self) -> str:
        """The URL in the ready line."""
        line = self.ready_line()
        assert line.startswith("holdfast is ready: "), line + self.errors()
        return line.removeprefix("holdfast is ready: ").split()[0]

    def errors(self) -> str:
        return Path(self._errors.name).read_text("utf-8")

    def ends(self) -> int:
        """Wait until the process ends by itself; return its exit code."""
        return self.process.wait(STOP_LIMIT_S)

    def stop(self, with_signal: int = signal.SIGTERM) -> tuple[int, float]:
        """Stop the server; return its exit code, and the seconds that this took."""
        begin = time.monotonic()
        self.process.send_signal(with_signal)
        code = self.process.wait(STOP_LIMIT_S)
        return code, time.monotonic() - begin

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.process.wait() < 0:
            # It was killed, and could not stop its store.
            kill_orphans_in(self._home)
        if self.process.stdout is not None:
            self.process.stdout.close()
        self._errors.close()


@contextlib.contextmanager
def program(
    *arguments: str,
    home: Path,
    variables: Mapping[str, str] | None = None,
    stdout: int = subprocess.PIPE,
) -> Iterator[Program]:
    """Runs until the end of the block at the latest."""
    running = Program(*arguments, home=home, variables=variables, stdout=stdout)
    try:
        yield running
    finally:
        running.close()
        for line in (home / "stderr").read_text("utf-8").splitlines():
            assert "Traceback" not in line, line
            if line.startswith("{"):
                assert orjson.loads(line)["level"] != "error", line


def admin_url(running: Program) -> str:
    """The URL of the administration in the log."""
    (url,) = re.findall(r"the administration is at (\S+)/console/", running.errors())
    return str(url)
