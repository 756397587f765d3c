"""Speaks Bayeux by long-polling over simulated connections."""

import asyncio
import random
import re
from collections.abc import Sequence
from typing import Any

import orjson

Message = dict[str, Any]
_HEAD = (
    b"POST %s HTTP/1.1\r\nHost: %s:%d\r\nContent-Type: application/json\r\n"
    b"%sContent-Length: %d\r\n\r\n"
)
_COOKIE = re.compile(rb"Set-Cookie: (BAYEUX_BROWSER=[^;]*)")
_CONNECT_S = 2.0
_OK = 200


class Lost(Exception):
    """No answer arrived, or one that says nothing about the messages: they may be in force."""


class Denied(Exception):
    """The server refused the message."""

    def __init__(self, reply: Message) -> None:
        super().__init__(str(reply.get("error", "")))
        self.advice: Message = reply.get("advice") or {}

    @property
    def is_elsewhere(self) -> bool:
        """Whether another server may be able to do it."""
        return str(self).startswith("503")

    @property
    def ends_session(self) -> bool:
        """Whether the client needs another session."""
        reconnect = self.advice.get("reconnect")
        return reconnect in ("handshake", "none") or str(self).startswith("402")


class Talker:
    """One connection to one of several doors; after a failure, the next one is tried."""

    def __init__(self, doors: Sequence[tuple[str, int]], path: str = "/cometd") -> None:
        self._doors = doors
        self._path = path.encode()
        # Decided by the process that asks.
        self._tries: int | None = None
        # Of the browser that the connection belongs to.
        self._cookies: list[bytes] = []
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    def beside(self) -> "Talker":
        """Return another connection of the same browser."""
        other = Talker(self._doors, self._path.decode())
        other._cookies = self._cookies
        return other

    async def ask(self, messages: Sequence[Message], *, limit_s: float) -> list[Message]:
        """Send a request; returns the messages of the answer. Raises `Lost`."""
        try:
            async with asyncio.timeout(limit_s):
                status, body = await self._ask(orjson.dumps(messages))
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            self.hang_up()
            raise Lost(type(error).__name__) from error
        if status != _OK:
            self.hang_up()
            raise Lost(f"status {status}")
        found: list[Message] = orjson.loads(body)
        return found

    async def _ask(self, body: bytes) -> tuple[int, bytes]:
        if self._tries is None:
            self._tries = random.randrange(len(self._doors))
        place = self._doors[self._tries % len(self._doors)]
        if self._writer is None:
            async with asyncio.timeout(_CONNECT_S):
                self._reader, self._writer = await asyncio.open_connection(*place)
        assert self._reader is not None
        place_name = place[0].encode()
        cookie = b"".join(self._cookies)
        head = _HEAD % (self._path, place_name, place[1], cookie, len(body))
        self._writer.write(head + body)
        raw = await self._reader.readuntil(b"\r\n\r\n")
        if (found := _COOKIE.search(raw)) is not None:
            self._cookies[:] = [b"Cookie: %s\r\n" % found[1]]
        told = raw.lower()
        length = int(told.partition(b"content-length:")[2].partition(b"\r\n")[0])
        answer = await self._reader.readexactly(length)
        if b"connection: close" in told:
            self._close()
        return int(told.split(b" ", 2)[1]), answer

    def hang_up(self) -> None:
        """Close the connection; the next request goes to the next door."""
        self._tries = (self._tries or 0) + 1
        self._close()

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._reader = self._writer = None


def reply_to(channel: str, messages: Sequence[Message]) -> Message:
    """Return the reply to the message on this channel. Raises `Denied`, or `Lost` without one."""
    for each in messages:
        if each["channel"] == channel and "successful" in each:
            if not each["successful"]:
                raise Denied(each)
            return each
    raise Lost("no reply")
