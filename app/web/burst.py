"""What is said in one turn of the event loop is written when all of it is made.

A write wakes its reader, and the system has its say. Between two writes there should be nothing
else: a turn that reads, answers, writes and goes on to the next takes up to half as long again.
"""

import asyncio
from collections.abc import Callable

# Only what is small leaves at once, if anything does: then nobody need ask whether it has.
_SMALL = 16 * 1024
# The first must not wait until thousands are ready.
_MOST = 64


class Burst:
    """Holds small things back until the turn ends; `on_first` says that there are any.

    `ahead` is called before any of them leaves.
    """

    def __init__(self, on_first: Callable[[], None], ahead: Callable[[], None]) -> None:
        self._on_first = on_first
        self._ahead = ahead
        self._waiting: list[tuple[asyncio.WriteTransport, bytes]] = []

    def write(self, transport: asyncio.WriteTransport, data: bytes) -> None:
        """Give the transport these bytes, behind all that it was given before."""
        if len(data) > _SMALL or transport.get_write_buffer_size():
            self.send()
            transport.write(data)
            return
        if not self._waiting:
            self._on_first()
        self._waiting.append((transport, data))
        if len(self._waiting) >= _MOST:
            self.send()

    def send(self) -> None:
        """Nothing is held back any longer: the turn ends, or a connection is about to."""
        self._ahead()
        waiting, self._waiting = self._waiting, []
        for transport, data in waiting:
            # One that has been closed since must not cost the others what they are told.
            if not transport.is_closing():
                transport.write(data)
