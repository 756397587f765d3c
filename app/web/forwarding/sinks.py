"""What the coalescer writes to instead of a client's transport: frames on a link."""

import asyncio
from collections.abc import Callable
from typing import cast

from holdfast.web.forwarding.shard_link import Link


class AnswerSink(asyncio.WriteTransport):
    """Sends what is written over a link."""

    def __init__(self, link: Link) -> None:
        super().__init__()
        self._link = link

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._link.send(bytes(data))

    def is_closing(self) -> bool:
        return not self._link.is_open

    def get_write_buffer_size(self) -> int:
        return 0


class SocketSink(asyncio.WriteTransport):
    """Sends what is written to one socket at the other end of a link."""

    def __init__(self, link: Link, write: Callable[[bytes], None]) -> None:
        super().__init__()
        self._link = link
        self._write = write

    def write(self, data: bytes | bytearray | memoryview) -> None:
        # Not a copy: equal frames of many sockets are recognised by identity.
        self._write(cast("bytes", data))

    def is_closing(self) -> bool:
        return not self._link.is_open

    def get_write_buffer_size(self) -> int:
        return 0
