"""Lets readers of histories of this shard wait, and names places as they see them."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, Protocol, TypeVar

from holdfast.bayeux.server import Bayeux
from holdfast.bayeux.streams.history_parts import PlaceInvalid
from holdfast.delivery.messages.message import Message

# Offsets that every history has: its begin, and its end at the moment.
BEGIN: Final = "-1"
END: Final = "now"
# How many readers run before others do.
_AT_ONCE: Final = 50


class OtherEpoch(Exception):
    """The offset is of another store."""


class _Part(Protocol):
    @property
    def messages(self) -> Sequence[Message]: ...


P = TypeVar("P", bound=_Part)


class ReadersHere:
    """The readers that wait at this shard.

    Args:
        next_turn: Waits until there is time for a reader.
    """

    def __init__(self, bayeux: Bayeux, next_turn: Callable[[], Awaitable[None]]) -> None:
        self._epoch = bayeux.state.epoch
        self._streams = bayeux.streams
        self.next_turn = next_turn
        self._woken = _Woken()

    async def more(self, read: Callable[[], P], patterns: Sequence[str], wait_s: float) -> P:
        """Read when such a history has more, until there is something, or the time is over."""
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + wait_s
        while True:
            await self.until_woken(patterns, max(0.0, ends_at - loop.time()))
            await self.next_turn()
            part = read()
            if part.messages or not self._streams.may_wait or loop.time() >= ends_at:
                return part

    async def until_woken(self, patterns: Sequence[str], most_s: float) -> None:
        """Wait for a message of such a history, as long as readers may wait, and this long.

        Without channels or patterns, no message ends the wait.
        """
        if not self._streams.may_wait:
            return
        woken = asyncio.get_running_loop().create_future()
        wake = partial(self._woken.add, woken)
        timer = asyncio.get_running_loop().call_later(most_s, wake)
        self._streams.wait(patterns, wake)
        try:
            await woken
        finally:
            timer.cancel()
            self._streams.wait_no_more(wake)

    def offset(self, cursor: int) -> str:
        """Return a place as clients see it. Later ones are greater, byte by byte."""
        return f"{self._epoch}_{cursor:016d}"

    def place_in(self, offset: str | None) -> int | None:
        """Undo `offset`; None stands for the begin. Raises `PlaceInvalid` or `OtherEpoch`."""
        if offset is None or offset == BEGIN:
            return None
        epoch, _, cursor = offset.rpartition("_")
        if not (epoch.isalnum() and cursor.isdecimal() and offset.isascii()):
            raise PlaceInvalid
        if epoch != self._epoch:
            raise OtherEpoch
        return int(cursor)


class _Woken:
    """Lets readers that are woken run, not all of them before anything else."""

    def __init__(self) -> None:
        self._readers: deque[asyncio.Future[None]] = deque()

    def add(self, reader: asyncio.Future[None]) -> None:
        """Let a reader run soon."""
        if not self._readers:
            asyncio.get_running_loop().call_soon(self._go_on)
        self._readers.append(reader)

    def _go_on(self) -> None:
        for _ in range(min(_AT_ONCE, len(self._readers))):
            reader = self._readers.popleft()
            if not reader.done():
                reader.set_result(None)
        if self._readers:
            asyncio.get_running_loop().call_soon(self._go_on)
