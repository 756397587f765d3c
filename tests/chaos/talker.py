"""A strict Bayeux client for one session."""

import asyncio
from collections.abc import Mapping
from typing import Any

import aiohttp
import orjson

from tests.abuse.attacker import BUSY

Message = dict[str, Any]

_NO_FAREWELL = aiohttp.ClientWSTimeout(ws_close=0.05)


class Lost(Exception):
    """There was no answer: the server may have done what was asked."""


class NotSent(Lost):
    """There was no server to ask: nothing was done."""


class Denied(Exception):
    """The answer is no; nothing was done unless it says that nobody knows."""

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error

    @property
    def is_session_unknown(self) -> bool:
        return self.error.startswith("402")

    @property
    def is_of_destinations(self) -> bool:
        """Whether no destination takes the message, which may change later."""
        return self.error.startswith(("403", "404", "507"))

    @property
    def is_unsure(self) -> bool:
        return "unknown" in self.error.split(":")[1].split(",")[1:]


class Talker:
    """One browser: its cookie stays when its sessions do not."""

    connection_type = "long-polling"

    def __init__(self, url: str, *, timeout_s: float) -> None:
        self._url = f"{url}/cometd"
        self._http = aiohttp.ClientSession(
            cookie_jar=aiohttp.CookieJar(unsafe=True),
            timeout=aiohttp.ClientTimeout(total=timeout_s),
        )
        self.client_id: str | None = None
        # The number of sessions so far, which names them without their client ids.
        self.sessions = 0

    async def close(self) -> None:
        await self._http.close()

    def move(self, url: str) -> None:
        """Use another address of the server."""
        self._url = f"{url}/cometd"

    async def ask(self, message: Mapping[str, Any]) -> list[Message]:
        """Everything that comes back for one message."""
        body = orjson.dumps([{"clientId": self.client_id, **message}])
        headers = {"Content-Type": "application/json"}
        try:
            async with self._http.post(self._url, data=body, headers=headers) as response:
                answer = await response.read()
        except aiohttp.ClientConnectorError as error:
            raise NotSent(str(error)) from error
        except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
            raise Lost(repr(error)) from error
        if response.status != 200:
            raise Lost(f"status {response.status}")
        found: list[Message] = orjson.loads(answer)
        return found

    async def handshake(self, ext: Mapping[str, Any]) -> Message:
        self.client_id = None
        channel = "/meta/handshake"
        types = [self.connection_type]
        message = {"channel": channel, "version": "1.0", "supportedConnectionTypes": types}
        # While its event loop lags, as it may on a slow machine, a server refuses handshakes.
        answer = await self.ask({**message, "ext": ext})
        while any(each.get("error") == BUSY for each in answer):
            await asyncio.sleep(0.1)
            answer = await self.ask({**message, "ext": ext})
        found = reply_to(channel, answer)
        self.client_id = found["clientId"]
        self.sessions += 1
        return found

    async def subscribe(self, channel: str, cursor: int | None = None) -> Message:
        """Subscribe, behind this cursor if there is one."""
        name = "/meta/subscribe"
        message: Message = {"channel": name, "subscription": channel}
        if cursor is not None:
            message["ext"] = {"replay": cursor}
        return reply_to(name, await self.ask(message))


class SocketTalker(Talker):
    """The same over a WebSocket, which is opened again when it is lost."""

    connection_type = "websocket"

    def __init__(self, url: str, *, timeout_s: float) -> None:
        super().__init__(url, timeout_s=timeout_s)
        self._timeout_s = timeout_s
        self._socket: aiohttp.ClientWebSocketResponse | None = None

    async def close(self) -> None:
        await self._hang_up()
        await super().close()

    async def ask(self, message: Mapping[str, Any]) -> list[Message]:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._converse(message)
        except aiohttp.ClientConnectorError as error:
            raise NotSent(str(error)) from error
        except (aiohttp.ClientError, TimeoutError, ConnectionError, Lost) as error:
            # A late answer must not be taken for that of another message.
            await self._hang_up()
            raise Lost(repr(error)) from error

    async def _converse(self, message: Mapping[str, Any]) -> list[Message]:
        if self._socket is None:
            self._socket = await self._http.ws_connect(self._url, timeout=_NO_FAREWELL)
        await self._socket.send_str(
            orjson.dumps([{"clientId": self.client_id, **message}]).decode()
        )
        found: list[Message] = []
        while not any(_is_reply(each, message["channel"]) for each in found):
            frame = await self._socket.receive()
            if frame.type is not aiohttp.WSMsgType.TEXT:
                raise Lost(f"the socket ends: {frame.type.name}")
            found += orjson.loads(frame.data)
        return found

    async def _hang_up(self) -> None:
        if self._socket is not None:
            await self._socket.close()
            self._socket = None


def reply_to(channel: str, found: list[Message]) -> Message:
    """The reply among events and whatever else; raises `Denied` if it is no."""
    for message in found:
        if _is_reply(message, channel):
            if not message["successful"]:
                raise Denied(message.get("error", "::"))
            return message
    raise Lost(f"no reply on {channel}")


def _is_reply(message: Message, channel: str) -> bool:
    return message["channel"] == channel and "successful" in message
