"""Speaks HTTP/1.1 and WebSocket in all the ways that servers may, from tidy to ugly."""

import asyncio
import base64
import hashlib

from bench.load.faulty_server import FaultyServer

WEBSOCKET_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
CONTINUATION, TEXT, CLOSE, PING = 0, 1, 8, 9

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
CHUNK_SIZES = (1, 2, 7, 100, 5000)
# Shares of the ugly responses that come in chunks, and of those that begin with 100 Continue.
CHUNKED, CONTINUED = 0.7, 0.3


class Connection:
    """One connection of the load generator."""

    def __init__(
        self, server: FaultyServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._server = server
        self._reader = reader
        self._writer = writer
        self._responses = 0
        self._exchanges: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        try:
            while await self._serve_request():
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the load generator may leave at any time
        finally:
            for exchange in self._exchanges:
                exchange.cancel()
            self._writer.close()

    async def _serve_request(self) -> bool:
        """Answer one request; return False after the last one of the connection."""
        head = await self._reader.readuntil(b"\r\n\r\n")
        headers = parse_headers(head)
        if headers.get(b"upgrade", b"").lower() == b"websocket":
            await self._serve_websocket(headers[b"sec-websocket-key"])
            return False
        body = await self._reader.readexactly(int(headers[b"content-length"]))
        text = (await self._server.answer(body)).encode()
        self._responses += 1
        every = self._server.manners.close_every
        closes = bool(every) and self._responses % every == 0
        await self._respond(text, closes=closes)
        return not closes

    async def _respond(self, body: bytes, *, closes: bool) -> None:
        extra = b"Connection: close\r\n" if closes else b""
        if not self._server.manners.is_ugly:
            self._writer.write(plain_response(body, extra))
        elif self._server.random.random() < CHUNKED:
            if self._server.random.random() < CONTINUED:
                self._writer.write(CONTINUE)
            await self._write_in_two(self._chunked_response(body, extra))
        elif closes:
            self._writer.write(b"HTTP/1.0 200 OK\r\n\r\n" + body)  # the close ends the body
        else:
            await self._write_in_two(plain_response(body, extra))
        await self._writer.drain()

    def _chunked_response(self, body: bytes, extra: bytes) -> bytes:
        parts = [
            b"HTTP/1.1 200 OK\r\nset-cookie: A=1; Path=/\r\nTransfer-Encoding: chunked\r\n",
            extra + b"\r\n",
        ]
        offset = 0
        while offset < len(body):
            size = self._server.random.choice(CHUNK_SIZES)
            chunk = body[offset : offset + size]
            parts.append(b"%x;ext=1\r\n%b\r\n" % (len(chunk), chunk))
            offset += size
        return b"".join(parts) + b"0\r\nTrailer: x\r\n\r\n"

    async def _write_in_two(self, response: bytes) -> None:
        cut = self._server.random.randrange(len(response))
        self._writer.write(response[:cut])
        # Long enough that the first half leaves alone.
        await asyncio.sleep(0.0005)
        self._writer.write(response[cut:])

    async def _serve_websocket(self, key: bytes) -> None:
        accept = base64.b64encode(hashlib.sha1(key + WEBSOCKET_GUID).digest())  # noqa: S324 - RFC 6455 wants it
        self._writer.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
            b"Connection: Upgrade\r\nSec-WebSocket-Accept: " + accept + b"\r\n\r\n"
        )
        while True:
            code, payload = await self._read_frame()
            if code == CLOSE:
                return
            if code == TEXT:
                # Exchanges overtake each other: a held connect does not stop a publish.
                exchange = asyncio.create_task(self._exchange(payload))
                self._exchanges.add(exchange)
                exchange.add_done_callback(self._exchanges.discard)

    async def _exchange(self, payload: bytes) -> None:
        self._send_text(await self._server.answer(payload, self._send_text))

    async def _read_frame(self) -> tuple[int, bytes]:
        first, second = await self._reader.readexactly(2)
        length = second & 127
        if length > 125:
            length = int.from_bytes(await self._reader.readexactly(2 if length == 126 else 8))
        mask = await self._reader.readexactly(4)
        masked = await self._reader.readexactly(length)
        return first & 15, bytes(byte ^ mask[n & 3] for n, byte in enumerate(masked))

    def _send_text(self, text: str) -> None:
        payload = text.encode()
        if not self._server.manners.is_ugly or len(payload) <= 10:
            self._writer.write(frame(TEXT, payload))
            return
        self._writer.write(
            frame(TEXT, payload[:5], is_final=False)
            + frame(PING, b"hi")
            + frame(CONTINUATION, payload[5:9], is_final=False)
            + frame(CONTINUATION, payload[9:])
        )


def parse_headers(head: bytes) -> dict[bytes, bytes]:
    pairs = (line.partition(b":") for line in head.split(b"\r\n")[1:])
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def plain_response(body: bytes, extra: bytes) -> bytes:
    return (
        b"HTTP/1.1 200 OK\r\nSet-Cookie: B=2;Path=/\r\ncontent-LENGTH:%d\r\n" % len(body)
        + extra
        + b"\r\n"
        + body
    )


def frame(code: int, payload: bytes, *, is_final: bool = True) -> bytes:
    first, length = code | (0x80 if is_final else 0), len(payload)
    if length < 126:
        return bytes([first, length]) + payload
    if length < 65536:
        return bytes([first, 126]) + length.to_bytes(2) + payload
    return bytes([first, 127]) + length.to_bytes(8) + payload
