"""The places of servers: one, or one for each shard of the deployment.

On a host of several, the first place is for the process that claims shards, and each shard that it
has claimed has one.
"""

from collections.abc import Mapping
from typing import Any

from holdfast.supervisor.control import Do, Say, is_own
from holdfast.supervisor.processes import Process, close_all
from holdfast.supervisor.system import System

# A server that last said this is open to clients.
SERVING = (Say.READY, Say.BACK)
# Five servers that live no longer are five in a minute: then there are pauses, which grow.
_SHORT_LIFE_S = 12.0
_SHORT_LIVES = 5
_LONGEST_PAUSE_S = 30.0
# So often a claimed shard may fail to open before another host gets it.
_MOST_FAILURES = 2


class Place:
    """What a server is for. When the server ends, another one takes its place."""

    # The one that serves or is about to; None before the first.
    server: Process | None = None
    # When the next server may start.
    resumes_at = 0.0
    # How often its server has ended, and another one was to take its place; and how the last did.
    ends = 0
    last_end = ""
    # Whether its server has said that another one has its store.
    is_fenced = False
    # How many of its servers have ended in a row before they served.
    failures = 0
    _short_lives = 0

    def __init__(
        self,
        number: int,
        kept: dict[str, int],
        system: System,
        claim: Mapping[str, Any] | None = None,
    ) -> None:
        self._system = system
        self.number = number
        # Of a claimed shard: its number, and why its first server may open it.
        self.claim = claim
        # What its server gave for the next one.
        self.kept = kept
        self._began = system.now()
        # The last one whose end was noted.
        self._ended: Process | None = None

    @property
    def living(self) -> Process | None:
        """The server that lives here."""
        return None if self.server is None or self.server.code is not None else self.server

    @property
    def is_empty(self) -> bool:
        """Whether no server lives here."""
        return self.living is None

    @property
    def is_lost(self) -> bool:
        """Whether this place of a claimed shard is to have no other server."""
        is_over = self.is_fenced or self.failures >= _MOST_FAILURES
        return self.claim is not None and self.is_empty and is_over

    @property
    def is_open(self) -> bool:
        """Whether its server has the store, so that it can serve."""
        return self._said in (Say.OPENED, Do.SERVE, *SERVING)

    @property
    def has_settled(self) -> bool:
        """Whether its server needs no other one any more, before it leaves or ends."""
        return self._said in (Say.SETTLED, Do.REST, Say.LEFT)

    @property
    def is_waiting(self) -> bool:
        """Whether its server waits until another one, elsewhere, has the store no more."""
        return self._said == Say.WAITING

    @property
    def is_serving(self) -> bool:
        """Whether its server is open to clients."""
        return self._said in SERVING

    @property
    def _said(self) -> str:
        return "" if self.living is None else self.living.said

    def begin(self, server: Process) -> None:
        """Have a server that takes the place of no other."""
        self.server, self._began = server, self._system.now()

    def pause_s(self) -> float | None:
        """Return for how long to wait before the next server, when one has ended; else None."""
        if not self.is_empty or self._ended is self.server:
            return None
        self._ended = self.server
        self.ends += 1
        has_served = self.server is not None and self.server.said in SERVING
        self.failures = 0 if has_served else self.failures + 1
        self.last_end = "" if self.server is None else self.server.ending
        now = self._system.now()
        self._short_lives = self._short_lives + 1 if now - self._began < _SHORT_LIFE_S else 1
        found = 0.0
        if self._short_lives >= _SHORT_LIVES:
            found = min(2.0 ** (self._short_lives - _SHORT_LIVES), _LONGEST_PAUSE_S)
        self.resumes_at = now + found
        return found

    def given(self, by_first: Mapping[str, int]) -> dict[str, int]:
        """Return what its next server inherits.

        Args:
            by_first: What the first of all servers gave; here without what each has for itself.
        """
        shared = {name: each for name, each in by_first.items() if not is_own(name)}
        return shared | {name: each for name, each in self.kept.items() if is_own(name)}

    def keep(self, server: Process) -> None:
        """Keep what its server gave, in place of what an earlier one did.

        What all servers inherit, the first place has for all.
        """
        close_all(self.kept, self._system)
        for name in [*server.kept]:
            if self.number == 0 or is_own(name):
                self.kept[name] = server.kept.pop(name)
        close_all(server.kept, self._system)
