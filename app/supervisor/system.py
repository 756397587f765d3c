"""What the supervisor and its importer ask of the system, all of it in one place.

Tests play a system in which a seed decides what happens, so nothing else here asks the real one.
"""

import gc
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from importlib import import_module
from selectors import EVENT_READ, DefaultSelector
from types import FrameType
from typing import NamedTuple, NoReturn, Protocol

from holdfast.supervisor.control import STATE_VARIABLE, VARIABLE, Channel, channel_pair
from holdfast.supervisor.systemd import OF_SYSTEMD

# The signals that are heard. Processes that are started do not have them blocked.
_OURS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
# A server must not lose it before it has a handler.
_STOP = (signal.SIGTERM,)
_SET_CHILD_SUBREAPER = 36  # of prctl(2)
# How many fields of /proc/PID/stat are needed, behind the name of the program.
_OF_STAT = 13


class Signs(NamedTuple):
    """What shows whether a process runs."""

    # Whether it runs, or would if a processor were free.
    is_runnable: bool
    # The processor time that it has used, of all its threads and of the first, in the system's
    # units.
    used: tuple[int, int]


class System(Protocol):
    """The system as one process sees it. Only `wait` waits."""

    def now(self) -> float:
        """Return the time of a monotonic clock, in seconds."""
        ...

    def wait(self, limit_s: float | None = None) -> None:
        """Wait for a parcel or a signal, and then have the parcels heard."""
        ...

    # Signals

    def hear_signals(self) -> None:
        """Let signals end a `wait`, instead of this process."""
        ...

    def signals(self) -> Sequence[int]:
        """Return the signals that have arrived since the last call."""
        ...

    def signals_held(self) -> AbstractContextManager[None]:
        """Let no signal arrive meanwhile."""
        ...

    def has_terminal(self) -> bool:
        """Return whether a terminal controls this process."""
        ...

    # Processes

    def start(self, words: Sequence[str]) -> tuple[Channel, int]:
        """Start an importer; returns the channel to it, and its pid. Raises `OSError`."""
        ...

    def become(
        self, words: Sequence[str], state: Mapping[str, object], descriptors: Iterable[int]
    ) -> None:
        """Run the code that is on the disk now, with these descriptors. Raises `OSError`."""
        ...

    def prepare_forks(self) -> None:
        """Let copies of this process have as much as possible in common with it."""
        ...

    def fork(self, descriptor: int) -> int:
        """Make a copy of this process, with this channel; returns its pid, and 0 in the copy."""
        ...

    def signal(self, pid: int, number: int) -> None:
        """Send a signal, if there is such a process."""
        ...

    def signs(self, pid: int) -> Signs | None:
        """Return signs of a process; None where the system has none, as macOS has."""
        ...

    def adopt_orphans(self) -> None:
        """Have orphans below this process become its children, so that it learns how they end."""
        ...

    def ended(self) -> Iterator[tuple[int, int]]:
        """Yield the pids of children that have ended, each with its exit code; once."""
        ...

    def code_of(self, pid: int) -> int | None:
        """Return how a process has ended: None if it has not, 0 if that is not to be known."""
        ...

    def end(self) -> NoReturn:
        """End this process."""
        ...

    # Channels and descriptors

    def channel_pair(self) -> tuple[Channel, Channel]:
        """Return both ends of a new channel."""
        ...

    def channel(self, descriptor: int) -> Channel:
        """Return the channel of a descriptor, which it then owns. Raises `OSError`."""
        ...

    def listen(self, channel: Channel, hear: Callable[[], None]) -> None:
        """Have `wait` call this whenever the channel has parcels."""
        ...

    def forget(self, channel: Channel) -> None:
        """Close a channel, if that has not been done, and listen to it no longer."""
        ...

    def copy(self, descriptor: int) -> int:
        """Return another descriptor of the same. Raises `OSError`."""
        ...

    def close(self, descriptor: int) -> None:
        """Close a descriptor."""
        ...

    def keep_to_itself(self, descriptor: int) -> None:
        """Let no process inherit a descriptor that this one has inherited."""
        ...


class RealSystem:
    """The system below this process."""

    def __init__(self) -> None:
        self._selector = DefaultSelector()
        # The end of a pipe to which signals are written, and the other one.
        self._woken = self._wake = -1
        # What signals did before they were heard.
        self._before: dict[int, object] = {}

    def now(self) -> float:
        return time.monotonic()

    def wait(self, limit_s: float | None = None) -> None:
        for key, _ in self._selector.select(limit_s):
            key.data()

    # Signals

    def hear_signals(self) -> None:
        self._woken, self._wake = os.pipe()
        for each in (self._woken, self._wake):
            os.set_blocking(each, False)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        for number in _OURS:
            # Under nohup it is ignored.
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                self._before[number] = signal.signal(number, _heard)
        self._selector.register(self._woken, EVENT_READ, _nothing)
        # The program that this one was before may have blocked them.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _OURS)

    def signals(self) -> Sequence[int]:
        try:
            return os.read(self._woken, 1024)
        except BlockingIOError:
            return b""

    @contextmanager
    def signals_held(self) -> Iterator[None]:
        signal.pthread_sigmask(signal.SIG_BLOCK, _OURS)
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _OURS)

    def has_terminal(self) -> bool:
        return has_terminal()

    # Processes

    def start(self, words: Sequence[str]) -> tuple[Channel, int]:
        ours, theirs = channel_pair()
        os.set_inheritable(theirs.fileno(), True)
        environment = {name: each for name, each in os.environ.items() if name not in OF_SYSTEMD}
        environment[VARIABLE] = str(theirs.fileno())
        program = command(words)
        pid = os.posix_spawn(program[0], program, environment, setsigmask=[])
        theirs.close()
        return ours, pid

    def become(
        self, words: Sequence[str], state: Mapping[str, object], descriptors: Iterable[int]
    ) -> None:
        for each in descriptors:
            os.set_inheritable(each, True)
        program, left = command(words), json.dumps(state)
        os.execve(program[0], program, {**os.environ, STATE_VARIABLE: left})  # noqa: S606

    def prepare_forks(self) -> None:
        # The supervisor is about to become this code: it must be there, without an error.
        import_module("holdfast.supervisor.replacing")
        gc.freeze()

    def fork(self, descriptor: int) -> int:
        # The supervisor says once that a server is to stop. Until the server has its own handlers
        # this waits, instead of being ignored as here.
        signal.pthread_sigmask(signal.SIG_BLOCK, _STOP)
        pid = os.fork()
        if pid == 0:
            os.environ[VARIABLE] = str(descriptor)
            self._hear_no_longer()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP)
        return pid

    def _hear_no_longer(self) -> None:
        self._selector.close()
        signal.set_wakeup_fd(-1)
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type] # what it was
        for each in (self._woken, self._wake):
            os.close(each)

    def signal(self, pid: int, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, number)

    def signs(self, pid: int) -> Signs | None:
        # The name of the program, before that, may have blanks and parentheses.
        fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        # Not all systems have it. It counts nanoseconds, not hundredths.
        finest = _read(f"/proc/{pid}/schedstat").split()[:1]
        if len(fields) < _OF_STAT:
            return None
        used, of_first = fields[11:13], [*finest, b"0"][0]
        return Signs(fields[0] == b"R", (sum(map(int, used)), int(of_first)))

    def adopt_orphans(self) -> None:
        if sys.platform == "linux":
            import ctypes

            ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def ended(self) -> Iterator[tuple[int, int]]:
        with suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                yield found[0], os.waitstatus_to_exitcode(found[1])

    def code_of(self, pid: int) -> int | None:
        try:
            found, status = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            # Somebody else has it as a child, such as an importer that is ending, too.
            return None if _exists(pid) else 0
        return os.waitstatus_to_exitcode(status) if found else None

    def end(self) -> NoReturn:
        os._exit(0)

    # Channels and descriptors

    def channel_pair(self) -> tuple[Channel, Channel]:
        return channel_pair()

    def channel(self, descriptor: int) -> Channel:
        return Channel.of_descriptor(descriptor)

    def listen(self, channel: Channel, hear: Callable[[], None]) -> None:
        self._selector.register(channel, EVENT_READ, hear)

    def forget(self, channel: Channel) -> None:
        if channel.fileno() >= 0:
            self._selector.unregister(channel)
            channel.close()

    def copy(self, descriptor: int) -> int:
        return os.dup(descriptor)

    def close(self, descriptor: int) -> None:
        os.close(descriptor)

    def keep_to_itself(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)


def _read(path: str) -> bytes:
    with suppress(OSError), open(path, "rb") as file:
        return file.read()
    return b""


def _exists(pid: int) -> bool:
    """Return whether there is such a process, of this user."""
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def _nothing() -> None:
    """Do nothing: `signals` returns what has arrived."""


def _heard(_: int, __: FrameType | None) -> None:
    """Do nothing when a signal comes. macOS drops one that is ignored, even while it is blocked."""


def command(words: Sequence[str]) -> list[str]:
    """Return the program with these words, as this one was started: with the same modules."""
    started = sys.orig_argv[1 : len(sys.orig_argv) - len(words)]
    if sys.orig_argv[-len(words) :] != [*words]:
        # It was forked by something else.
        started = ["-P", "-m", "holdfast"]
    return [sys.executable, *started, *words]


def has_terminal() -> bool:
    """Return whether a terminal controls this process."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True
