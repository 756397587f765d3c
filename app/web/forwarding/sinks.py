"""What the coalescer writes to instead of a client's transport: frames on a link."""

import asyncio
from collections.abc import Callable
from typing import cast

from holdfast.web.forwarding.shard_link import Link


class LinkSink(asyncio.WriteTransport):
    """Passes what is written on to what sends it over a link."""

    def __init__(self, link: Link, send: Callable[[bytes], None]) -> None:
        super().__init__()
        self._link = link
        self._send = send

    def write(self, data: bytes | bytearray | memoryview) -> None:
        # Not a copy: equal frames of many sockets are recognised by identity.
        self._send(cast("bytes", data))

    def abort(self) -> None:
        self._link.abort()

    def is_closing(self) -> bool:
        return not self._link.is_open

    def get_write_buffer_size(self) -> int:
        return 0
