"""What many clients are told in one turn is written when all of it is made, one behind the other.

A write wakes its reader, and the system has its say. Between two writes there should be nothing
else: a turn that makes an answer, writes it and goes on to the next takes a sixth longer.
"""

import asyncio
from types import TracebackType
from typing import Self

# Only what is small leaves at once, if anything does: then nobody need ask whether it has.
_SMALL = 16 * 1024
# The first must not wait until thousands are ready.
_MOST = 64


class Burst:
    """Writes at once; as a context it holds small things back until it ends."""

    def __init__(self) -> None:
        self._waiting: list[tuple[asyncio.WriteTransport, bytes]] = []
        self._is_holding = False

    def __enter__(self) -> Self:
        self._is_holding = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_holding = False
        self._send()

    def write(self, transport: asyncio.WriteTransport, data: bytes) -> None:
        """Give the transport these bytes, behind all that it was given before."""
        if not self._is_holding:
            transport.write(data)
        elif len(data) > _SMALL or transport.get_write_buffer_size():
            self._send()
            transport.write(data)
        else:
            self._waiting.append((transport, data))
            if len(self._waiting) >= _MOST:
                self._send()

    def _send(self) -> None:
        waiting, self._waiting = self._waiting, []
        for transport, data in waiting:
            # One that has been closed since must not cost the others what they are told.
            if not transport.is_closing():
                transport.write(data)
