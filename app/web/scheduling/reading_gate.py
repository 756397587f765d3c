"""Whether connections are read, and what was read is handled: no longer while a server leaves."""

import asyncio
from enum import Enum
from typing import Protocol


class Reading(Enum):
    """How far a server has left its connections."""

    # All connections are read.
    OPEN = "open"
    # Only connections whose request or frame has begun are read, until it is complete.
    FINISHING = "finishing"
    # No connection is read. What was read is handled.
    PAUSED = "paused"
    # Nothing is handled any more, because a successor will.
    STILL = "still"


class Pausable(Protocol):
    """A connection whose reading can pause."""

    def pause_until_open(self) -> None:
        """Stop reading. Nothing else may resume it while the gate does not let it be read."""
        ...


class ReadingGate:
    """Says which connections may be read. All listeners of a process share one."""

    __slots__ = ("_opened", "state", "under_way", "unfinished")

    def __init__(self) -> None:
        self.state = Reading.OPEN
        # While `FINISHING`, the connections that are still read.
        self.unfinished: set[Pausable] = set()
        # How many requests are handled in steps, the next of which may be for another process.
        self.under_way = 0
        self._opened: asyncio.Event | None = None

    @property
    def is_still(self) -> bool:
        """Whether nothing may be handled."""
        return self.state is Reading.STILL

    @property
    def lets_begin(self) -> bool:
        """Whether the next step of a request may begin."""
        return self.state is Reading.OPEN or self.state is Reading.FINISHING

    def lets_read(self, connection: Pausable) -> bool:
        """Return whether a connection may be read now."""
        return self.state is Reading.OPEN or connection in self.unfinished

    def note_complete(self, connection: Pausable) -> None:
        """Record that a request or frame that came in pieces is complete."""
        if connection in self.unfinished:
            self.unfinished.discard(connection)
            connection.pause_until_open()

    async def until_handling(self) -> None:
        """Wait while nothing may be handled."""
        if self.is_still:
            if self._opened is None:
                self._opened = asyncio.Event()
            await self._opened.wait()

    def open(self) -> None:
        """Let all connections be read again."""
        self.state = Reading.OPEN
        self.unfinished.clear()
        if self._opened is not None:
            self._opened.set()
            self._opened = None
