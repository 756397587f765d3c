"""The port for links has room for connections that say at once which shard they want."""

import asyncio
import os
import select
import socket
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.compose.forwarding import bound
from holdfast.compose.placement import far_link_in
from holdfast.supervisor.packets import PACKETS, PacketSocket
from holdfast.web.host_links import front_desk, preamble
from holdfast.web.host_links.front_desk import FrontDesk
from holdfast.web.http.addresses import listen_at
from tests.store.store_process import until
from tests.web.certificates import Authority
from tests.web.host_links.stage import Certificates, hall

HOST = "127.0.0.1"


class Desk:
    """A desk, and the worker of shard 1."""

    def __init__(self, home: Path) -> None:
        sockets = listen_at([HOST], 0, 100)
        self.port = sockets[0].getsockname()[1]
        self.desk = FrontDesk(sockets, lambda shard: far_link_in(home, shard), 3)
        self.listening = bound(far_link_in(home, 1), PACKETS)

    async def passed_on(self) -> tuple[bytes, socket.socket]:
        """Wait for the next connection that reaches the worker, and what was said on it."""
        self.listening.setblocking(False)
        accepted, _ = await asyncio.get_running_loop().sock_accept(self.listening)
        # It was sent before anything can be accepted, or at once after that.
        with accepted:
            await until(lambda: bool(select.select([accepted], [], [], 0)[0]))
            packet = PacketSocket(accepted, 100).receive()
        assert packet is not None
        [descriptor] = packet.descriptors
        return packet.data, socket.socket(fileno=descriptor)


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.desk.close()
    made.listening.close()


async def is_closed(reader: asyncio.StreamReader) -> bool:
    """Wait until the connection is closed, without a word."""
    async with asyncio.timeout(60):
        try:
            return await reader.read() == b""
        except ConnectionError:
            return True


async def test_a_connection_is_passed_on_with_everything_behind_the_two_bytes(desk: Desk) -> None:
    _, writer = await asyncio.open_connection(HOST, desk.port)
    writer.write(preamble.pack(1) + b"the rest")
    said, connection = await desk.passed_on()
    with connection:
        assert said == b"\0\1"
        connection.settimeout(60)
        assert connection.recv(100) == b"the rest"
    writer.close()


async def test_the_two_bytes_may_come_one_by_one(desk: Desk) -> None:
    _, writer = await asyncio.open_connection(HOST, desk.port)
    writer.write(b"\0")
    await until(lambda: [each for each, _ in desk.desk._silent.values()] == [b"\0"])
    writer.write(b"\1rest")
    said, connection = await desk.passed_on()
    with connection:
        assert said == b"\0\1"
        connection.settimeout(60)
        assert connection.recv(100) == b"rest"
    writer.close()


@pytest.mark.parametrize("said", [b"", b"\0"], ids=["nothing", "one byte"])
async def test_a_connection_that_does_not_say_what_it_is_for_is_closed(
    desk: Desk, said: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(front_desk, "_SAYING_S", 0.1)
    reader, writer = await asyncio.open_connection(HOST, desk.port)
    writer.write(said)
    assert await is_closed(reader)
    assert not desk.desk._silent
    writer.close()


async def test_a_byte_buys_no_more_time(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front_desk, "_SAYING_S", 0.3)
    began = asyncio.get_running_loop().time()
    reader, writer = await asyncio.open_connection(HOST, desk.port)
    await asyncio.sleep(0.2)
    writer.write(b"\0")
    assert await is_closed(reader)
    writer.close()
    assert asyncio.get_running_loop().time() - began >= 0.28


@pytest.mark.parametrize("said", [b"\0\0", b"\0\2", b"\0\3", b"\xff\xff", b"GET / HTTP/1.1\r\n"])
async def test_a_connection_for_a_shard_that_has_no_worker_here_is_closed(
    desk: Desk, said: bytes
) -> None:
    reader, writer = await asyncio.open_connection(HOST, desk.port)
    writer.write(said)
    assert await is_closed(reader)
    assert not desk.desk._silent
    writer.close()


async def test_a_worker_that_has_ended_gets_no_connection(desk: Desk) -> None:
    desk.listening.close()
    reader, writer = await asyncio.open_connection(HOST, desk.port)
    writer.write(preamble.pack(1))
    assert await is_closed(reader)
    writer.close()


async def test_a_worker_that_takes_nothing_does_not_keep_others_waiting(desk: Desk) -> None:
    """The place where its connections wait is full."""
    full = []
    while True:
        end = socket.socket(socket.AF_UNIX, PACKETS)
        end.setblocking(False)
        full.append(end)
        try:
            end.connect(desk.listening.getsockname())
        except BlockingIOError:
            break
    reader, writer = await asyncio.open_connection(HOST, desk.port)
    writer.write(preamble.pack(1))
    assert await is_closed(reader)
    writer.close()
    for end in full:
        end.close()


async def test_the_oldest_silent_connection_makes_room(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(front_desk, "_MOST_SILENT", 3)
    monkeypatch.setattr(front_desk, "_SAYING_S", 3600.0)
    talks = []
    for count in range(1, 5):
        talks.append(await asyncio.open_connection(HOST, desk.port))
        await until(lambda count=count: len(desk.desk._silent) == min(count, 3))  # type: ignore[misc]
    assert await is_closed(talks[0][0])
    _, writer = talks[-1]
    writer.write(preamble.pack(1))
    said, connection = await desk.passed_on()
    assert said == b"\0\1"
    connection.close()
    for _, each in talks:
        each.close()


async def test_a_desk_that_pauses_accepts_again(desk: Desk) -> None:
    silent, first = await asyncio.open_connection(HOST, desk.port)
    await until(lambda: len(desk.desk._silent) == 1)
    desk.desk.pause()
    assert await is_closed(silent)
    _, writer = await asyncio.open_connection(HOST, desk.port)
    writer.write(preamble.pack(1))
    await asyncio.sleep(0.1)
    desk.desk.resume()
    said, connection = await desk.passed_on()
    assert said == b"\0\1"
    connection.close()
    writer.close()
    first.close()


async def test_a_desk_without_descriptors_accepts_later(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    [listening] = desk.desk._sockets
    attempts = 0

    class Crowded:
        """Has no descriptor the first time."""

        def fileno(self) -> int:
            return listening.fileno()

        def accept(self) -> Any:
            nonlocal attempts
            attempts += 1
            if attempts == 1:
                raise OSError(24, os.strerror(24))
            return listening.accept()

    desk.desk.pause()
    monkeypatch.setattr(desk.desk, "_sockets", [Crowded()])
    desk.desk.resume()
    _, writer = await asyncio.open_connection(HOST, desk.port)
    writer.write(preamble.pack(1))
    _, connection = await desk.passed_on()
    connection.close()
    writer.close()
    assert "cannot accept connections of other hosts" in caplog.text
    # It is not asked again and again meanwhile.
    assert attempts < 10
    desk.desk.pause()
    monkeypatch.setattr(desk.desk, "_sockets", [listening])


@pytest.mark.parametrize("shard", [0, 1, 255, 256, 0xFFFF])
def test_the_number_of_a_shard_comes_back_from_two_bytes(shard: int) -> None:
    assert preamble.unpack(preamble.pack(shard)) == shard


@given(st.binary(max_size=4))
def test_no_other_number_of_bytes_names_a_shard(data: bytes) -> None:
    if len(data) == 2:
        assert preamble.pack(preamble.unpack(data)) == data
    else:
        with pytest.raises(ValueError, match="bytes instead of 2"):
            preamble.unpack(data)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.binary(max_size=64), max_size=20))
def test_whatever_is_said_at_the_port_later_links_are_made(said: list[bytes]) -> None:
    async def play(home: Path) -> None:
        async with hall(home, Certificates(Authority(home))) as both:
            for each in said:
                _, writer = await asyncio.open_connection(HOST, both.port)
                writer.write(each)
                writer.close()
            await both.linked()

    with tempfile.TemporaryDirectory() as home:
        asyncio.run(play(Path(home)))
