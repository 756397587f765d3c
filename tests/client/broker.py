"""The part of an MQTT 3.1.1 broker that a bridge needs: small packets, each confirmed."""

import asyncio
from asyncio import IncompleteReadError, StreamReader, StreamWriter

_CONNECT, _PUBLISH, _SUBSCRIBE, _PING = 1, 3, 8, 12


class Broker:
    """Keeps what clients publish, and sends messages to all subscribers."""

    def __init__(self) -> None:
        self.published: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()
        self.port = 0
        self._server: asyncio.Server | None = None
        self._connected: set[StreamWriter] = set()
        self._subscribed: set[StreamWriter] = set()

    async def start(self) -> None:
        """Listen, at the same port as before if there was one."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    def stop(self) -> None:
        """Refuse new connections, and cut all others."""
        assert self._server is not None
        self._server.close()
        for writer in self._connected:
            writer.transport.abort()

    def send(self, topic: str, payload: bytes) -> None:
        name = topic.encode()
        body = len(name).to_bytes(2) + name + payload
        for writer in self._subscribed:
            writer.write(bytes([_PUBLISH << 4, len(body)]) + body)

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        self._connected.add(writer)
        try:
            while True:
                head, size = await reader.readexactly(2)
                self._take(head >> 4, await reader.readexactly(size), writer)
        except (ConnectionError, IncompleteReadError):
            writer.close()
        finally:
            self._connected.discard(writer)
            self._subscribed.discard(writer)

    def _take(self, kind: int, body: bytes, writer: StreamWriter) -> None:
        if kind == _CONNECT:
            writer.write(b"\x20\x02\x00\x00")
        elif kind == _SUBSCRIBE:
            self._subscribed.add(writer)
            writer.write(b"\x90\x03" + body[:2] + b"\x01")
        elif kind == _PUBLISH:
            end = 2 + int.from_bytes(body[:2])
            self.published.put_nowait((body[2:end].decode(), body[end + 2 :]))
            writer.write(b"\x40\x02" + body[end : end + 2])
        elif kind == _PING:
            writer.write(b"\xd0\x00")
