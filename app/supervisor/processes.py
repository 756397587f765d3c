"""The processes below the supervisor, as it knows them."""

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress

from holdfast.supervisor.control import VARIABLE, Channel, channel_pair
from holdfast.supervisor.systemd import OF_SYSTEMD

# The signals that the supervisor handles. Processes that it starts do not have them blocked.
OURS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
_SET_CHILD_SUBREAPER = 36  # of prctl(2)


class Process:
    """An importer or a server. Without a `pid` it is not forked yet; with a `code` it is over."""

    def __init__(self, channel: Channel, pid: int = 0) -> None:
        self.channel = channel
        self.pid = pid
        self.code: int | None = None

    @property
    def is_over(self) -> bool:
        return self.code is not None

    def tell(self, descriptors: Sequence[int] = (), /, **fields: object) -> None:
        """Tell it, if it listens; otherwise its end, or its silence, says the rest."""
        with suppress(ConnectionError):
            self.channel.send(descriptors, **fields)

    def signal(self, number: int) -> None:
        if self.pid and not self.is_over:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def exists(self) -> bool:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return True


class Importer(Process):
    """It forks servers; `state` is the version of the state that its supervisor understands."""

    state = 0


class Server(Process):
    """It serves, or is about to, or leaves."""

    # The last of its words that waits for an answer: prepared, ready, left, or back.
    said = ""
    # Why it failed, as it said.
    why = ""
    # Seconds since it last said that it is alive, in which the supervisor ran; none before.
    silent_s: float | None = None
    # When it is killed at the latest: it was told to go.
    ends_by: float | None = None

    def __init__(
        self, channel: Channel, pid: int, kept: dict[str, int], importer: Importer | None
    ) -> None:
        super().__init__(channel, pid)
        # What the servers after this one are to have, by name.
        self.kept = kept
        # None if it was forked before the supervisor became a new program.
        self.importer = importer


def command(words: Sequence[str]) -> list[str]:
    """Return the program with these words, as this one was started: with the same modules."""
    started = sys.orig_argv[1 : len(sys.orig_argv) - len(words)]
    if sys.orig_argv[-len(words) :] != [*words]:
        # It was forked by something else.
        started = ["-P", "-m", "holdfast"]
    return [sys.executable, *started, *words]


def started_importer(words: Sequence[str]) -> Importer:
    """Start an importer of the code that is on the disk now."""
    ours, theirs = channel_pair()
    os.set_inheritable(theirs.fileno(), True)
    environment = {name: each for name, each in os.environ.items() if name not in OF_SYSTEMD}
    environment[VARIABLE] = str(theirs.fileno())
    program = command(words)
    pid = os.posix_spawn(program[0], program, environment, setsigmask=[])
    theirs.close()
    return Importer(ours, pid)


def ending(process: Process) -> str:
    """Say how a process has ended."""
    code = process.code or 0
    return f"exit code {code}" if code >= 0 else f"signal {-code}"


def exit_code(process: Process) -> int:
    """Return the exit code of a program that ended as this one did, as shells have it."""
    code = process.code or 0
    return code if code >= 0 else 128 - code


def close_all(kept: dict[str, int]) -> None:
    """Let go of these descriptors."""
    while kept:
        os.close(kept.popitem()[1])


def has_terminal() -> bool:
    """Whether a terminal controls this process."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


def become_subreaper() -> None:
    """Have orphans below this process become its children, so that it learns how servers end."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
