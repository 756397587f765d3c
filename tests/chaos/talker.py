"""Bayeux over long-polling, by hand: one session, and no forgiveness for anything odd."""

import asyncio
from collections.abc import Mapping
from typing import Any

import aiohttp
import orjson

Message = dict[str, Any]


class Lost(Exception):
    """No answer: what was asked may have been done."""


class NotSent(Lost):
    """There was nobody to ask: nothing was done."""


class Denied(Exception):
    """The answer is no; nothing was done unless it says that nobody knows."""

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error

    @property
    def is_session_unknown(self) -> bool:
        return self.error.startswith("402")

    @property
    def is_unsure(self) -> bool:
        return "unknown" in self.error.split(":")[1].split(",")[1:]


class Talker:
    """One browser: its cookie stays when its sessions do not."""

    def __init__(self, url: str, *, patience_s: float) -> None:
        self._url = f"{url}/cometd"
        self._http = aiohttp.ClientSession(
            cookie_jar=aiohttp.CookieJar(unsafe=True),
            timeout=aiohttp.ClientTimeout(total=patience_s),
        )
        self.client_id: str | None = None
        # How many sessions there have been, which names them without telling their secret.
        self.sessions = 0

    async def close(self) -> None:
        await self._http.close()

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
        types = ["long-polling"]
        message = {"channel": channel, "version": "1.0", "supportedConnectionTypes": types}
        found = reply_to(channel, await self.ask({**message, "ext": ext}))
        self.client_id = found["clientId"]
        self.sessions += 1
        return found

    async def subscribe(self, channel: str) -> Message:
        name = "/meta/subscribe"
        return reply_to(name, await self.ask({"channel": name, "subscription": channel}))

    async def handshake_until_answered(
        self, ext: Mapping[str, Any], *, within_s: float = 30.0
    ) -> Message:
        async with asyncio.timeout(within_s):
            while True:
                try:
                    return await self.handshake(ext)
                except (Lost, Denied):
                    await asyncio.sleep(0.1)


def reply_to(channel: str, found: list[Message]) -> Message:
    """The reply among events and whatever else; raises `Denied` if it is no."""
    for message in found:
        if message["channel"] == channel and "successful" in message:
            if not message["successful"]:
                raise Denied(message.get("error", "::"))
            return message
    raise Lost(f"no reply on {channel}")
