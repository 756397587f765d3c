"""What a successor writes to a relayed connection before the relay is complete arrives."""

import asyncio
import socket
from collections.abc import Callable

import pytest

from holdfast.web.doors.relays import Relays


class Written(asyncio.Transport):
    """Remembers what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.data = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.data += bytes(data)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        pass

    def resume_reading(self) -> None:
        pass


class Connection:
    """A connection with TLS, as far as relays use it."""

    def __init__(self, transport: Written) -> None:
        self.transport: Written | None = transport

    def connection_lost(self, error: Exception | None) -> None:
        pass


async def test_what_is_read_before_the_relay_is_complete_reaches_the_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client, successor = Written(), Written()

    async def connect(make: Callable[[], asyncio.Protocol], link: socket.socket) -> None:
        link.close()
        protocol = make()
        protocol.connection_made(successor)
        protocol.data_received(b"early")
        await asyncio.sleep(0)

    monkeypatch.setattr(asyncio.get_running_loop(), "connect_accepted_socket", connect)
    ours, theirs = socket.socketpair()
    with theirs:
        relays = Relays()
        relays.begin(Connection(client), ours)  # type: ignore[arg-type]
        for _ in range(10):
            await asyncio.sleep(0)
    assert client.data == b"early"
