"""The processes below the supervisor, as it knows them."""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from holdfast.supervisor.control import VARIABLE, Channel, Do, Parcel, Say, channel_pair
from holdfast.supervisor.systemd import OF_SYSTEMD

# The signals that the supervisor handles. Processes that it starts do not have them blocked.
OURS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
_SET_CHILD_SUBREAPER = 36  # of prctl(2)


class Process:
    """An importer, or a server that it forks."""

    # Of a server: who it is to the reader of an error, and which one of several.
    title = "the server"
    shard = ""
    # How many servers it wants there to be, and the directory of their links.
    workers = 1
    links = ""
    # Its exit code, or the negative number of the signal that has ended it; None while it lives.
    code: int | None = None
    # Why it failed, as it said, and whether it therefore ends.
    why = ""
    is_lost = False
    # Seconds since it last said that it is alive, in which the supervisor ran; none before.
    silent_s: float | None = None
    # Whether clients wait for it: it opens, leaves, is about to end, or has said nothing since it
    # was ready.
    is_awaited = False

    def __init__(self, channel: Channel, pid: int = 0, importer: "Process | None" = None) -> None:
        self.channel = channel
        # 0 until the importer has forked it.
        self.pid = pid
        # None if it is one.
        self.importer = importer
        # The last that it said of what is waited for: imported, prepared, ready, left, or back.
        self.told: Mapping[str, Any] = {}
        # What it gave with this: descriptors for the servers after it, by name.
        self.kept: dict[str, int] = {}

    def tell(self, descriptors: Sequence[int] = (), /, **fields: object) -> None:
        """Tell it, if it listens; otherwise its end, or its silence, says the rest."""
        with suppress(ConnectionError):
            self.channel.send(descriptors, **fields)

    def let_serve(self) -> None:
        """Have it serve, if it is open and waits for that."""
        if self.said == Say.OPENED:
            self.told = {"say": Do.SERVE}
            self.tell(do=Do.SERVE)

    def keep(self, parcel: Parcel) -> None:
        """Take the descriptors that it gives, in place of others."""
        close_all(self.kept)
        self.kept = dict(zip(parcel.fields["names"], parcel.descriptors, strict=True))
        parcel.descriptors.clear()

    def hurry(self) -> None:
        """Have it killed soon if it is silent, because clients wait for it."""
        self.is_awaited, self.silent_s = True, self.silent_s or 0.0

    def note_alive(self) -> None:
        """Note that it has just said so."""
        self.silent_s = 0.0
        self.is_awaited = self.is_awaited and self.said != Say.READY

    def signal(self, number: int) -> None:
        if self.pid and self.code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    @property
    def name(self) -> str:
        """Who it is to the reader of an error."""
        return f"{self.title}{self.shard}"

    @property
    def is_forked(self) -> bool:
        """Whether a server exists. It may speak before its importer says which process it is."""
        return bool(self.pid or self.told) or self.silent_s is not None

    @property
    def said(self) -> str:
        return str(self.told.get("say", ""))

    @property
    def ending(self) -> str:
        """How it has ended, in words."""
        code = self.code or 0
        return f"exit code {code}" if code >= 0 else f"signal {-code}"


def command(words: Sequence[str]) -> list[str]:
    """Return the program with these words, as this one was started: with the same modules."""
    started = sys.orig_argv[1 : len(sys.orig_argv) - len(words)]
    if sys.orig_argv[-len(words) :] != [*words]:
        # It was forked by something else.
        started = ["-P", "-m", "holdfast"]
    return [sys.executable, *started, *words]


def started_importer(words: Sequence[str]) -> Process:
    """Start an importer of the code that is on the disk now; raises `OSError`."""
    ours, theirs = channel_pair()
    os.set_inheritable(theirs.fileno(), True)
    environment = {name: each for name, each in os.environ.items() if name not in OF_SYSTEMD}
    environment[VARIABLE] = str(theirs.fileno())
    program = command(words)
    pid = os.posix_spawn(program[0], program, environment, setsigmask=[])
    theirs.close()
    return Process(ours, pid)


def code_of(pid: int) -> int:
    """Return how a process ends that is about to; 0 if somebody else has reaped it."""
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except ChildProcessError:
        return 0


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
