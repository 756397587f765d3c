"""Servers as forks of one process that has imported them; the import takes most of a second.

`python -m tests.forking` is that process. For each request on its standard input, a socket, it
forks a program; what waits for the program reports its number and its exit code on a pipe.
"""

import atexit
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from select import select
from threading import Lock
from typing import IO, Any, NoReturn

ROOT = Path(__file__).parents[1]
_REQUEST_SIZE = 65536
_MOST_FILES = 4
_HASH_SEED = "PYTHONHASHSEED"


class Forked:
    """The part of `subprocess.Popen` that tests of servers need."""

    def __init__(self, output: int, reports: int) -> None:
        self.stdout: IO[bytes] | None = os.fdopen(output, "rb")
        self.returncode: int | None = None
        self._reports = os.fdopen(reports, "rb", buffering=0)
        self.pid = int(self._reports.readline())

    def poll(self) -> int | None:
        return self._reported(0.0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._reported(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("a forked program", timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            # It may have ended before its report is here.
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _reported(self, timeout: float | None) -> int | None:
        if self.returncode is None and select([self._reports], [], [], timeout)[0]:
            self.returncode = int(self._reports.readline())
            self._reports.close()
        return self.returncode


class _Forks:
    """The process that forks, for as long as the tests run."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._requests, theirs = socket.socketpair()
        self._turn = Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__], cwd=ROOT, env=environment, stdin=theirs.fileno()
        )
        theirs.close()
        atexit.register(self._end)

    def ask(self, request: Mapping[str, Any], files: Sequence[int]) -> None:
        with self._turn:
            data = json.dumps(request).encode()
            assert len(data) <= _REQUEST_SIZE
            socket.send_fds(self._requests, [data], files)
            # It is ready for the next.
            assert self._requests.recv(1), "the process that forks has ended"

    def _end(self) -> None:
        self._requests.close()
        self._process.wait()


@cache
def _forks_from(path: str, hash_seed: str | None) -> _Forks:
    """The forks of the server whose package is at this path; the seed decides the order of sets."""
    seeded = {} if hash_seed is None else {_HASH_SEED: hash_seed}
    return _Forks({**os.environ, **seeded, "PYTHONPATH": path})


def start(
    module: str,
    *arguments: str,
    environment: Mapping[str, str],
    cwd: Path,
    errors: IO[bytes],
    has_session: bool = False,
    given: Mapping[str, int] | None = None,
    imports: Sequence[str] = (),
) -> Forked:
    """Run a module of that environment's `PYTHONPATH` as `python -m` does; reads its output.

    It gets the open files of `given`, whose names are variables with their numbers. The process
    that forks keeps the modules of `imports` for all later programs with this environment's path
    and hash seed.
    """
    given = given or {}
    output, stdout = os.pipe()
    reports, told = os.pipe()
    request = {
        "words": [module, *arguments],
        "environment": dict(environment),
        "cwd": str(cwd),
        "has_session": has_session,
        "given": [*given],
        "imports": [*imports],
    }
    files = (stdout, errors.fileno(), told, *given.values())
    forks = _forks_from(environment["PYTHONPATH"], environment.get(_HASH_SEED))
    forks.ask(request, files)
    os.close(stdout)
    os.close(told)
    return Forked(output, reports)


def _serve_forks() -> None:
    """Fork until nobody asks any more; returns in programs, too, which are to run then."""
    import gc

    gc.disable()
    # As `holdfast serve` does.
    import_module("holdfast.cli.main").load("serve")
    gc.freeze()
    gc.enable()
    # Ctrl-C, which ends the tests, closes the socket.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=os.dup(0)) as requests, open(os.devnull, "rb") as nothing:
        # Programs read nothing, and do not hold the socket open.
        os.dup2(nothing.fileno(), 0)
        while True:
            data, files, _, _ = socket.recv_fds(requests, _REQUEST_SIZE, _MOST_FILES)
            if not data:
                return
            request = json.loads(data)
            for module in request.pop("imports"):
                import_module(module)
            if os.fork() == 0:
                requests.close()
                _fork(request, *files)
            for file in files:
                os.close(file)
            _bury()
            requests.send(b"\n")


def _bury() -> None:
    """Let go of those whose program has ended."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _fork(request: Mapping[str, Any], stdout: int, errors: int, told: int, *given: int) -> NoReturn:
    program = os.fork()
    if program == 0:
        os.close(told)
        os.dup2(stdout, 1)
        os.dup2(errors, 2)
        os.close(stdout)
        os.close(errors)
        _run(**{**request, "given": dict(zip(request["given"], map(str, given), strict=True))})
    for file in (stdout, errors, *given):
        os.close(file)
    os.write(told, b"%d\n" % program)
    _, status = os.waitpid(program, 0)
    # After a failed test, nobody may be left to read it.
    with suppress(BrokenPipeError):
        os.write(told, b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def _run(
    words: Sequence[str],
    environment: Mapping[str, str],
    cwd: str,
    has_session: bool,
    given: Mapping[str, str],
) -> NoReturn:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if has_session:
        os.setsid()
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update({**environment, **given})
    sys.argv = list(words)
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    sys.exit()


if __name__ == "__main__":
    _serve_forks()
