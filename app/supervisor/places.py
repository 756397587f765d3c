"""The places of servers: one, or one for each shard of the deployment."""

import time
from collections.abc import Mapping

from holdfast.supervisor.control import OWN, Do, Say
from holdfast.supervisor.processes import Process

# A server that last said this is open to clients.
SERVING = (Say.READY, Say.BACK)
# Five servers that live no longer are five in a minute: then there are pauses, which grow.
_SHORT_LIFE_S = 12.0
_SHORT_LIVES = 5
_LONGEST_PAUSE_S = 30.0


class Place:
    """What a server is for. When the server ends, another one takes its place."""

    # The one that serves or is about to; None before the first.
    server: Process | None = None
    # When the next server may start.
    resumes_at = 0.0
    _short_lives = 0

    def __init__(self, number: int) -> None:
        self.number = number
        self._began = time.monotonic()
        # The last one whose end was noted.
        self._ended: Process | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no server lives here."""
        return self.server is None or self.server.code is not None

    @property
    def is_open(self) -> bool:
        """Whether its server has the store, so that it can serve."""
        return not self.is_empty and self._said in (Say.OPENED, Do.SERVE, *SERVING)

    @property
    def is_serving(self) -> bool:
        """Whether its server is open to clients."""
        return not self.is_empty and self._said in SERVING

    @property
    def _said(self) -> str:
        return "" if self.server is None else self.server.said

    def begin(self, server: Process) -> None:
        """Have a server that takes the place of no other."""
        self.server, self._began = server, time.monotonic()

    def pause_s(self) -> float | None:
        """Return for how long to wait before the next server, when one has ended; else None."""
        if not self.is_empty or self._ended is self.server:
            return None
        self._ended = self.server
        now = time.monotonic()
        self._short_lives = self._short_lives + 1 if now - self._began < _SHORT_LIFE_S else 1
        found = 0.0
        if self._short_lives >= _SHORT_LIVES:
            found = min(2.0 ** (self._short_lives - _SHORT_LIVES), _LONGEST_PAUSE_S)
        self.resumes_at = now + found
        return found

    # What servers of this place keep for later ones

    def given(self, kept: Mapping[str, int], by_first: Mapping[str, int]) -> dict[str, int]:
        """Return what its next server inherits, by the names that servers use.

        Args:
            by_first: Has what all servers inherit.
        """
        shared = {name: each for name, each in by_first.items() if not is_own(name)}
        own = {name: kept[key] for name in OWN if (key := self._key(name)) in kept}
        return {**shared, **own}

    def keeps(self, given: Mapping[str, int]) -> dict[str, int]:
        """Return what to keep of what its server gave: the first one gives what all share, too."""
        return {
            self._key(name): each for name, each in given.items() if name in OWN or self.number == 0
        }

    def replaces(self, kept: Mapping[str, int]) -> dict[str, int]:
        """Return what was kept of an earlier server of this place."""
        mine = {self._key(name) for name in OWN}
        return {
            name: each
            for name, each in kept.items()
            if name in mine or (self.number == 0 and not is_own(name))
        }

    def _key(self, name: str) -> str:
        return f"{name}.{self.number}" if self.number and name in OWN else name


def is_own(key: str) -> bool:
    """Whether a kept descriptor is for the servers of one place."""
    return key.partition(".")[0] in OWN
