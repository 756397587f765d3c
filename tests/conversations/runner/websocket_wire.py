"""WebSocket: frames both ways over one connection."""

import asyncio
from typing import TYPE_CHECKING

import aiohttp
from multidict import CIMultiDict

from tests.conversations.runner.stories import Body
from tests.conversations.runner.wire import TIMEOUT_S, Heard, connector, decoded, encoded

if TYPE_CHECKING:
    from tests.conversations.runner.notation import JSON

TEXT = aiohttp.WSMsgType.TEXT


class WebSocketWire:
    """One client's socket, opened when it is needed first, and what arrived on it."""

    def __init__(self, server: str, jar: aiohttp.CookieJar, path: str) -> None:
        self._server = server
        self._jar = jar
        self._path = path
        self._session: aiohttp.ClientSession | None = None
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._reader: asyncio.Task[None] | None = None
        self._upgrade: Heard | None = None
        self._frames: list[list[JSON]] = []
        self._end: str | None = None
        self._arrival = asyncio.Event()
        self._transport: asyncio.Transport | None = None

    async def say(self, body: Body, *, headers: CIMultiDict[str], is_held: bool) -> None:
        if self._socket is None:
            await self.open(self._path, headers)
            self._upgrade = None
        assert self._socket is not None, "the upgrade was refused"
        if body.encoding == "binary":
            await self._socket.send_bytes(encoded(body))
        else:
            await self._socket.send_frame(encoded(body), TEXT)

    async def open(self, target: str, headers: CIMultiDict[str]) -> None:
        """Ask for the upgrade; what comes of it is heard like an answer."""
        await self.drop()
        answers: list[CIMultiDict[str]] = []

        async def look_below(
            _session: aiohttp.ClientSession,
            _context: object,
            ended: aiohttp.TraceRequestEndParams,
        ) -> None:
            answers.append(ended.response.headers.copy())
            if ended.response.connection is not None:
                self._transport = ended.response.connection.transport

        trace = aiohttp.TraceConfig()
        trace.on_request_end.append(look_below)
        self._session = aiohttp.ClientSession(
            connector=connector(), cookie_jar=self._jar, trace_configs=[trace]
        )
        try:
            self._socket = await self._session.ws_connect(
                self._server.replace("http", "ws", 1) + target,
                headers=headers,
                max_msg_size=0,
                timeout=aiohttp.ClientWSTimeout(ws_receive=None, ws_close=1.0),
            )
        except aiohttp.WSServerHandshakeError as refusal:
            self._upgrade = Heard(f"refused {refusal.status}", headers=answers[-1])
            return
        self._upgrade = Heard("101", headers=answers[-1])
        self._reader = asyncio.create_task(self._read(self._socket))

    async def hear(self, count: int, *, is_held: bool, is_frame: bool) -> Heard:
        if self._upgrade is not None:
            upgrade, self._upgrade = self._upgrade, None
            return upgrade
        count = max(count, 1)
        await self._arrived(count)
        if is_frame and self._frames:
            return Heard("frame", self._frames.pop(0))
        messages: list[JSON] = []
        while self._frames and len(messages) < count:
            frame = self._frames[0]
            taken = frame[: count - len(messages)]
            messages += taken
            del frame[: len(taken)]
            if not frame:
                self._frames.pop(0)
        if messages:
            return Heard("200", messages)
        end, self._end = self._end, None
        return Heard(end or "silence")

    def unheard(self) -> str | None:
        return f"{self._frames[0]}" if self._frames else self._end

    def answered_early(self, *, newest_only: bool) -> str | None:
        return self.unheard()

    def read_on(self, is_reading: bool) -> None:
        assert self._transport is not None, "the socket is not open"
        if is_reading:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    async def drop(self) -> None:
        reader, self._reader, self._socket = self._reader, None, None
        if self._session is not None:
            await self._session.close()
        if reader is not None:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)
        self._session = self._upgrade = self._end = None
        self._frames.clear()

    async def close(self) -> None:
        if self._socket is not None:
            await self._socket.close()
        await self.drop()

    async def _arrived(self, count: int) -> None:
        """Return when so many messages are there, or the end, or the timeout."""
        try:
            async with asyncio.timeout(TIMEOUT_S):
                while self._end is None and sum(map(len, self._frames)) < count:
                    self._arrival.clear()
                    await self._arrival.wait()
        except TimeoutError:
            pass

    async def _read(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        while True:
            message = await socket.receive()
            if message.type != TEXT:
                self._end = f"closed {socket.close_code}"
                self._socket = None
                self._arrival.set()
                return
            self._frames.append(decoded(message.data))
            self._arrival.set()
