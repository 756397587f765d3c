"""Collects small writes and makes them at the end of the turn of the event loop.

A write wakes its reader through the kernel. Writing all responses together, without other work in
between, saves up to a third of a turn.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Final

from holdfast.web.scheduling.speaking import SpeakingRight

# Larger data is written at once, because only small writes can be collected without flow control.
_SMALL: Final = 16 * 1024
# Write early at this number, so that the first need not wait for thousands.
_MOST: Final = 64
# During a silence, writes to connections that have ended are dropped once this many wait, and a
# connection ends that has not read this much: its client sends requests without waiting.
_MANY: Final = 1000
_MOST_BYTES: Final = 256 * 1024


class WriteCoalescer:
    """Collects small writes until the turn ends. Calls `on_first` for the first one.

    `ahead` is called before anything is written. While this process must not speak, all writes
    wait; they are few, because no input is handled meanwhile, only refused.
    """

    def __init__(
        self, on_first: Callable[[], None], ahead: Callable[[], None], right: SpeakingRight
    ) -> None:
        self._on_first = on_first
        self._ahead = ahead
        self._right = right
        self._waits_for_right = False
        self._waiting: list[tuple[asyncio.WriteTransport, bytes]] = []
        # How many bytes clients were sent, before TLS. What aiohttp writes by itself is not in it.
        self.sent = 0
        # During a silence, look for lost connections again when this many writes wait.
        self._look_at = _MANY

    def write(self, transport: asyncio.WriteTransport, data: bytes) -> None:
        """Write these bytes to a client, after all earlier ones of the transport."""
        self.sent += len(data)
        if len(data) > _SMALL or transport.get_write_buffer_size():
            self.send()
            if not self._right.is_silent:
                transport.write(data)
                return
        if not self._waiting:
            self._on_first()
        self._waiting.append((transport, data))
        if len(self._waiting) >= _MOST:
            self.send()

    def pass_on(self, transport: asyncio.WriteTransport, data: bytes) -> None:
        """Write these bytes, which another worker counts if they are for a client."""
        self.sent -= len(data)
        self.write(transport, data)

    def send(self) -> None:
        """Write everything now: at the end of the turn, or before a connection closes."""
        self._ahead()
        if not self._right.may_speak():
            self._wait_for_right()
            return
        waiting, self._waiting = self._waiting, []
        for transport, data in waiting:
            # A transport that has been closed since must not fail the others' writes.
            if not transport.is_closing():
                transport.write(data)

    @property
    def place(self) -> int:
        """Where the next write is among those that wait."""
        return len(self._waiting)

    def let_pass(self, place: int) -> None:
        """Make all writes since this place, even in a silence: what they say, another process does.

        They stay behind earlier ones of the same connection.
        """
        if not self._right.is_silent or len(self._waiting) == place:
            return
        held = {transport for transport, _ in self._waiting[:place]}
        passing, self._waiting[place:] = self._waiting[place:], []
        for transport, data in passing:
            if transport in held:
                self._waiting.append((transport, data))
            elif not transport.is_closing():
                transport.write(data)

    def drop(self) -> None:
        """End the connections with writes that wait: this process will never make them."""
        waiting, self._waiting = self._waiting, []
        for transport, _ in waiting:
            transport.abort()

    def _wait_for_right(self) -> None:
        if not self._waits_for_right:
            self._waits_for_right = True
            self._right.when_speaking(self._send_again)
        if len(self._waiting) >= self._look_at:
            self._make_room()

    def _make_room(self) -> None:
        sizes: Counter[asyncio.WriteTransport] = Counter()
        for transport, data in self._waiting:
            sizes[transport] += len(data)
        for transport, size in sizes.items():
            if size > _MOST_BYTES:
                transport.abort()
        self._waiting = [each for each in self._waiting if not each[0].is_closing()]
        self._look_at = max(_MANY, 2 * len(self._waiting))

    def _send_again(self) -> None:
        self._waits_for_right = False
        self.send()
