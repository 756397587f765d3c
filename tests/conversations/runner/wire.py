"""What the carriers of the transports have in common."""

import asyncio
import json
import socket
from dataclasses import dataclass, field
from typing import Protocol

import aiohttp
from multidict import CIMultiDict

from tests.conversations.runner.notation import JSON
from tests.conversations.runner.stories import Body

TIMEOUT_S = 60.0
RECEIVE_BUFFER = 65536


@dataclass(frozen=True, slots=True)
class Heard:
    """What came back: a response, frames of a socket, or the end of a socket."""

    outcome: str  # "200", "frame", "closed 1000", "refused 403", "silence"
    messages: list[JSON] = field(default_factory=list)
    headers: CIMultiDict[str] = field(default_factory=CIMultiDict)
    body: str = ""


class Wire(Protocol):
    """One client's way to the server over one transport."""

    async def say(self, body: Body, *, headers: CIMultiDict[str], is_held: bool) -> None:
        """Send; wait for nothing."""

    async def hear(self, count: int, *, is_held: bool, is_frame: bool) -> Heard:
        """The answer: a whole response, or the next `count` messages, or exactly one frame."""

    def unheard(self) -> str | None:
        """What arrived, or still is due, without the story saying so."""

    def answered_early(self, *, newest_only: bool) -> str | None:
        """What arrived although it should be held; perhaps of the request that was sent last."""

    def read_on(self, is_reading: bool) -> None:
        """Take bytes off the socket, or no longer."""

    async def drop(self) -> None:
        """Lose the network: open requests and sockets end without a farewell."""

    async def close(self) -> None:
        """Say farewell, if the transport knows one."""


def encoded(body: Body) -> bytes:
    match body.encoding:
        case "hex":
            return bytes.fromhex(body.text)
        case "binary":
            return body.text.encode()
        case charset:
            return body.text.encode(charset)


def decoded(text: str) -> list[JSON]:
    """The messages of a response or frame, which is always an array of at least one."""
    messages = json.loads(text)
    assert isinstance(messages, list), f"no array: {text}"
    assert messages, "an empty array, which clients take for a failure"
    return messages


def connector() -> aiohttp.TCPConnector:
    """Connections that hold little for a client that stops reading."""

    def open_socket(address: aiohttp.AddrInfoType) -> socket.socket:
        family, kind, protocol, _, _ = address
        opened = socket.socket(family, kind, protocol)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        return opened

    return aiohttp.TCPConnector(socket_factory=open_socket)


async def turns_of_the_loop() -> None:
    """Let tasks see what has already arrived."""
    for _ in range(5):
        await asyncio.sleep(0)
