"""What code asks its system for: time, randomness, sockets, locks. A simulated process answers.

Inside `simulated`, the functions of `time`, `random`, `os` and others ask which process runs now.
Where none does, they are what they were.
"""

import asyncio
import fcntl
import os
import random
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol


class Machine(Protocol):
    """What a process sees of the world: the time by each clock, randomness, and its locks."""

    random: random.Random
    pid: int

    def wall(self) -> float: ...
    def monotonic(self) -> float: ...
    def boot(self) -> float: ...
    def work(self) -> float: ...
    def listen(self, host: str, port: int) -> Any: ...
    def lock(self, file: int) -> None: ...
    def signal(self, pid: int, number: int) -> None: ...


class _Running:
    """Which process runs now."""

    process: Machine | None = None


_running = _Running()


def enter(process: Machine, loop: asyncio.AbstractEventLoop) -> None:
    """Let everything that runs from now on be part of this process."""
    _running.process = process
    asyncio._set_running_loop(loop)


def running_process() -> Machine | None:
    """Return the process that runs now."""
    return _running.process


def leave() -> None:
    """Let nothing that runs from now on be part of a process."""
    _running.process = None
    asyncio._set_running_loop(None)


@contextmanager
def inside(process: Machine, loop: asyncio.AbstractEventLoop | None) -> Iterator[None]:
    """Let what runs meanwhile be part of this process; another one may run around it."""
    before, loop_before = _running.process, asyncio._get_running_loop()
    _running.process = process
    asyncio._set_running_loop(loop)
    try:
        yield
    finally:
        _running.process = before
        asyncio._set_running_loop(loop_before)


@contextmanager
def simulated() -> Iterator[None]:
    """Answer the questions of simulated processes."""
    replaced: list[tuple[object, str, object]] = []
    answers = {id(real): (real, answer) for real, answer in _answers()}
    try:
        for module in [*sys.modules.values()]:
            if getattr(module, "__name__", None) in _REAL:
                continue
            for name, value in [*vars(module).items()]:
                real, answer = answers.get(id(value), (None, None))
                if real is not None and real is value:
                    replaced.append((module, name, real))
                    setattr(module, name, answer)
        yield
    finally:
        for place, name, real in replaced:
            setattr(place, name, real)


# These modules ask the real system: this one, and what measures tests.
_REAL = frozenset({__name__, "_pytest.timing", "_pytest.runner"})


def _answers() -> Iterator[tuple[object, object]]:
    """Yield each function to be replaced, and what replaces it."""
    for name, answer in _CLOCKS.items():
        yield _replaced(getattr(time, name), answer)
    for name in _OF_RANDOM:
        yield getattr(random, name), _chance(name)
    yield _replaced(os.urandom, lambda process, count: process.random.randbytes(count))
    yield _replaced(os.getpid, lambda process: process.pid)
    yield _replaced(os.kill, lambda process, pid, number: process.signal(pid, number))
    # Nothing here loses what a process has written.
    yield _replaced(os.fsync, lambda *_: None)
    yield _replaced(fcntl.flock, lambda process, file, _: process.lock(file))
    yield _replaced(socket.create_server, _listen)


def _replaced(real: Callable[..., Any], answer: Callable[..., Any]) -> tuple[object, object]:
    def ask(*args: Any, **options: Any) -> Any:
        process = _running.process
        return real(*args, **options) if process is None else answer(process, *args, **options)

    return real, ask


def _listen(process: Machine, place: tuple[str, int], **_: object) -> Any:
    return process.listen(*place)


def _gettime(process: Machine, clock: int) -> float:
    if clock == time.CLOCK_REALTIME:
        return process.wall()
    return process.boot() if clock == _BOOT else process.monotonic()


def _sleep(process: Machine, seconds: float) -> None:
    raise AssertionError(f"a process blocks its loop for {seconds} s")


def _ns(clock: Callable[[Machine], float]) -> Callable[[Machine], int]:
    return lambda process: round(clock(process) * 1e9)


def _wall(process: Machine) -> float:
    return process.wall()


def _monotonic(process: Machine) -> float:
    return process.monotonic()


def _work(process: Machine) -> float:
    return process.work()


def _chance(name: str) -> Callable[..., Any]:
    def ask(*args: Any, **options: Any) -> Any:
        process = _running.process
        assert process is not None, f"no seed decides what random.{name} returns to no process"
        return getattr(process.random, name)(*args, **options)

    return ask


_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_CLOCKS: dict[str, Callable[..., Any]] = {
    "time": _wall,
    "time_ns": _ns(_wall),
    "monotonic": _monotonic,
    "monotonic_ns": _ns(_monotonic),
    "perf_counter": _work,
    "perf_counter_ns": _ns(_work),
    "thread_time": _work,
    "thread_time_ns": _ns(_work),
    "process_time": _work,
    "clock_gettime": _gettime,
    "sleep": _sleep,
}
_OF_RANDOM = ("random", "uniform", "randint", "randrange", "choice", "choices", "shuffle", "sample")
