"""WebSocket: frames carry messages both ways, and replies are told apart by their ids."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

import aiohttp
import orjson
from yarl import URL

from holdfast.client.transport_choice import WEBSOCKET
from holdfast.client.transports import (
    NETWORK_DELAY_S,
    OPENING_S,
    NoReply,
    NotSent,
    Receive,
    RequestRefused,
    ServerFault,
    decoded,
)
from holdfast.client.wire import Json

# Frames are decoded with their JSON.
_Socket = aiohttp.ClientWebSocketResponse[Literal[False]]
_SCHEMES = {"http": "ws", "https": "wss"}
# A server that can be reached answers a close in this time; others are not waited for.
_CLOSING = aiohttp.ClientWSTimeout(ws_close=1.0)
# Closes that say that a frame was wrong, and would be so again.
_REFUSED = {aiohttp.WSCloseCode.INVALID_TEXT, aiohttp.WSCloseCode.MESSAGE_TOO_BIG}
# The close that says that the server may fail over it each time.
_FAILED = aiohttp.WSCloseCode.INTERNAL_ERROR
# Servers close sockets with frames of more than a few MiB; what they send is not limited so.
_LARGEST_FRAME = 64 * 1024 * 1024


class CannotOpen(NotSent):
    """The server, or something on the way to it, accepts no WebSocket."""


class _Exchange:
    """The messages of one `send`, until all their replies are there."""

    def __init__(self, ids: set[str]) -> None:
        self.waits_for = ids
        self.replies: list[Json] = []
        self.done: asyncio.Future[list[Json]] = asyncio.get_running_loop().create_future()

    def give_up(self) -> None:
        """Take note that the sender waits no longer, so that no error is missed by the loop."""
        if not self.done.cancel() and not self.done.cancelled():
            self.done.exception()

    def take(self, reply: Json) -> None:
        self.replies.append(reply)
        self.waits_for.discard(reply["id"])
        if not self.waits_for and not self.done.done():
            self.done.set_result(self.replies)


class WebSocket:
    """One socket, opened by the first `send` and again by the first after it has closed."""

    name = WEBSOCKET

    def __init__(
        self,
        http: aiohttp.ClientSession,
        url: str,
        receive: Receive,
        has_room: Callable[[], Awaitable[None]],
    ) -> None:
        """After frames with events, reading waits for `has_room`."""
        self._http = http
        address = URL(url)
        self._url = address.with_scheme(_SCHEMES.get(address.scheme, address.scheme))
        self._receive = receive
        self._has_room = has_room
        self._socket: _Socket | None = None
        self._reader: asyncio.Task[None] | None = None
        self._exchanges: dict[str, _Exchange] = {}
        self._opening = asyncio.Lock()

    async def send(self, messages: Sequence[Json], timeout_s: float) -> list[Json]:
        socket = self._socket
        if socket is None or socket.closed:
            socket = await self.open()
        ids = [message["id"] for message in messages]
        exchange = _Exchange(set(ids))
        for id in ids:
            self._exchanges[id] = exchange
        try:
            async with asyncio.timeout(timeout_s + NETWORK_DELAY_S):
                await socket.send_frame(orjson.dumps(messages), aiohttp.WSMsgType.TEXT)
                return await exchange.done
        except TimeoutError as error:
            await self.close()
            raise NoReply("no reply in time") from error
        except (aiohttp.ClientError, ConnectionError) as error:
            # The server may have said why before it stopped reading.
            await self._until_read()
            if exchange.done.done():
                return await exchange.done
            raise NoReply(str(error) or type(error).__name__) from error
        finally:
            for id in ids:
                self._exchanges.pop(id, None)
            exchange.give_up()

    async def _until_read(self) -> None:
        """Wait a moment until all is read that came before the connection broke."""
        if self._reader is not None:
            await asyncio.wait([self._reader], timeout=_CLOSING.ws_close)

    async def open(self) -> _Socket:
        """Return the socket; open it if there is none. Raises `CannotOpen`."""
        async with self._opening:
            if self._socket is None or self._socket.closed:
                await self.close()
                try:
                    async with asyncio.timeout(OPENING_S):
                        self._socket = await self._http.ws_connect(
                            self._url,
                            max_msg_size=_LARGEST_FRAME,
                            timeout=_CLOSING,
                            decode_text=False,
                        )
                except (aiohttp.ClientError, OSError) as error:
                    raise CannotOpen(str(error) or type(error).__name__) from error
                self._reader = asyncio.create_task(self._read(self._socket))
            return self._socket

    async def close(self) -> None:
        socket, self._socket = self._socket, None
        reader, self._reader = self._reader, None
        if socket is not None:
            await socket.close()
        if reader is not None and reader is not asyncio.current_task():
            reader.cancel()
            await asyncio.wait([reader])

    async def _read(self, socket: _Socket) -> None:
        reason = NoReply("the socket was closed")
        try:
            async for frame in socket:
                if frame.type is aiohttp.WSMsgType.TEXT and self._take(frame.data):
                    await self._has_room()
            if socket.close_code in _REFUSED:
                is_too_large = socket.close_code == aiohttp.WSCloseCode.MESSAGE_TOO_BIG
                text = f"the socket was closed with {socket.close_code}"
                reason = RequestRefused(text, is_too_large=is_too_large)
            elif socket.close_code == _FAILED:
                reason = ServerFault(f"the socket was closed with {socket.close_code}")
        except NoReply as error:
            reason = error
            await socket.close()
        finally:
            self._give_up(reason)

    def _take(self, body: bytes) -> bool:
        """Pass events on, then replies; return whether there were events."""
        events, replies = decoded(body)
        if events:
            self._receive(events)
        for reply in replies:
            exchange = self._exchanges.get(str(reply.get("id")))
            if exchange is not None:
                exchange.take(reply)
        return bool(events)

    def _give_up(self, reason: NoReply) -> None:
        """Tell everybody who waits for a reply that there will be none."""
        for exchange in {*self._exchanges.values()}:
            if not exchange.done.done():
                exchange.done.set_exception(reason)
