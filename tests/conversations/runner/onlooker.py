"""Somebody who asks a server for nothing but an answer, as often as it takes."""

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from tests.conversations.runner.wire import TIMEOUT_S


class Onlooker:
    """One connection, opened when it is needed first; most requests to servers of stories are its.

    Written by hand, they cost the stories a fraction of what those of a whole client cost.
    """

    def __init__(self, server: str) -> None:
        self._address = urlsplit(server)
        self._request = f"GET /healthz HTTP/1.1\r\nHost: {self._address.netloc}\r\n\r\n".encode()
        self._connection: tuple[StreamReader, StreamWriter] | None = None

    async def ask(self) -> None:
        """Return when the server has answered."""
        async with asyncio.timeout(TIMEOUT_S):
            if self._connection is None:
                self._connection = await asyncio.open_connection(
                    self._address.hostname, self._address.port
                )
            reader, writer = self._connection
            writer.write(self._request)
            head = (await _head(reader)).lower()
            _, _, length = head.partition(b"\r\ncontent-length:")
            await reader.readexactly(int(length.split(b"\r\n", 1)[0]))
            if b"\r\nconnection: close\r\n" in head:
                self.leave()

    def leave(self) -> None:
        if self._connection is not None:
            self._connection[1].close()
            self._connection = None


async def _head(reader: StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        raise ConnectionResetError("the server has closed the connection") from None


@asynccontextmanager
async def onlooker_of(server: str) -> AsyncIterator[Onlooker]:
    onlooker = Onlooker(server)
    try:
        yield onlooker
    finally:
        onlooker.leave()
