"""The processes below the supervisor, as it knows them."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from holdfast.supervisor.control import Channel, Do, Parcel, Say
from holdfast.supervisor.system import Signs, System

# The title of a server that hands over its connections, or has done so.
FORMER = "a former server"


class Process:
    """An importer, or a server that it forks."""

    # Of a server: who it is to the reader of an error, and which one of several.
    title = "the server"
    shard = ""
    # How many servers it wants there to be, and the directory of their links; and how many shards
    # all hosts have, if there is a list of hosts.
    workers = 1
    links = ""
    shards = 0
    # Its exit code, or the negative number of the signal that has ended it; None while it lives.
    code: int | None = None
    # Why it failed, as it said, and whether it therefore ends.
    why = ""
    is_lost = False
    # Seconds since it last said that it is alive, in which the supervisor ran; none before.
    silent_s: float | None = None
    # What its last sign was and when; and for how long, in how many signs, it has not run.
    signs: Signs | None = None
    felt_at = 0.0
    still_s = 0.0
    still_signs = 0
    # Whether clients wait for it: it opens, leaves, is about to end, or has said nothing since it
    # was ready.
    is_awaited = False

    def __init__(
        self, system: System, channel: Channel, pid: int = 0, importer: "Process | None" = None
    ) -> None:
        self._system = system
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

    def let_rest(self) -> None:
        """Have it come to rest, if it has settled and waits for that."""
        if self.said == Say.SETTLED:
            self.told = {"say": Do.REST}
            self.tell(do=Do.REST)

    def note_told(self, fields: Mapping[str, Any]) -> None:
        """Note what it says, and how many servers there are to be, if it says so."""
        self.told = fields
        self.workers = int(fields.get("workers", self.workers))
        self.links = str(fields.get("links", self.links))
        self.shards = int(fields.get("shards", self.shards))

    def keep(self, parcel: Parcel) -> None:
        """Take the descriptors that it gives, in place of others."""
        close_all(self.kept, self._system)
        self.kept = dict(zip(parcel.fields["names"], parcel.descriptors, strict=True))
        parcel.descriptors.clear()

    def hurry(self) -> None:
        """Have it killed soon if it is silent, because clients wait for it."""
        self.is_awaited, self.silent_s = True, self.silent_s or 0.0

    def note_alive(self) -> None:
        """Note that it has just said so."""
        self.silent_s = 0.0
        self.note_running()
        self.is_awaited = self.is_awaited and self.said not in (Say.READY, Say.WAITING)

    def note_running(self) -> None:
        """Note that it may have run."""
        self.still_s, self.still_signs = 0.0, 0

    def signal(self, number: int) -> None:
        if self.pid and self.code is None:
            self._system.signal(self.pid, number)

    @property
    def name(self) -> str:
        """Who it is to the reader of an error."""
        return f"{self.title}{self.shard}"

    @property
    def has_left(self) -> bool:
        """Whether another server may serve in its place."""
        return self.title == FORMER or self.said == Say.LEFT

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


def close_all(kept: dict[str, int], system: System) -> None:
    """Let go of these descriptors."""
    while kept:
        system.close(kept.popitem()[1])
