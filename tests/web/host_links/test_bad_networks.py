"""What is between two hosts may be slow, cut what goes over it, or swallow it without a word."""

import asyncio
import gc
import os
import socket
import ssl
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from holdfast.compose.forwarding import bound
from holdfast.web.forwarding.frames import Kind, pack
from holdfast.web.host_links import far_keeper, moving_transport, receiver
from holdfast.web.host_links.far_keeper import FarKeeper, Hosts
from holdfast.web.host_links.tls_connection import TlsConnection
from holdfast.web.http.addresses import listen_at
from tests.chaos.proxy import Way
from tests.store.store_process import until
from tests.web.host_links.stage import DOOR, HOME, Certificates, both_loops, hall

_RESETS = 300


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let beats follow each other in less time."""
    monkeypatch.setattr(moving_transport, "_TICK_S", 0.05)


async def test_a_link_that_is_cut_is_made_again(tmp_path: Path, certificates: Certificates) -> None:
    async with hall(tmp_path, certificates) as both:
        await both.opened()
        both.proxy.reset()
        await until(lambda: both.far.passage.sent == (2, 0))
        assert both.inlet.lost == [(0, 1)]


async def test_an_attempt_that_fails_as_it_is_given_up_is_no_error(
    tmp_path: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(_: object, __: object, ___: object) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ConnectionResetError from None

    monkeypatch.setattr(far_keeper.FarKeeper, "_connect_to", fails)
    errors: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, about: errors.append(about))
    async with hall(tmp_path, certificates) as both:
        await until(lambda: both.known.asked > 0)
        await asyncio.sleep(0.05)
    gc.collect()
    assert errors == []


@pytest.mark.parametrize("ways", [[Way.UP], [Way.DOWN], [*Way]], ids=["up", "down", "both"])
async def test_a_link_that_is_swallowed_ends_at_both_ends(
    tmp_path: Path, certificates: Certificates, fast: None, ways: list[Way]
) -> None:
    async with hall(tmp_path, certificates) as both:
        await both.opened()
        both.proxy._swallowed = frozenset(ways)
        await both.linked(is_linked=False)
        await until(lambda: not both.server._homes)
        assert both.far.away_s > 0
        both.proxy._swallowed = frozenset()
        both.proxy.reset()
        await both.linked()


def test_an_idle_link_is_kept_by_its_beats(
    tmp_path: Path, certificates: Certificates, fast: None
) -> None:
    async def play() -> None:
        async with hall(tmp_path, certificates) as both:
            await both.opened()
            await asyncio.sleep(20 * moving_transport._TICK_S)
            # It is still the first one.
            assert (both.far.passage.sent, both.known.asked) == ((1, 0), 1)

    both_loops(play)


async def test_an_end_that_did_not_run_for_long_reads_what_came_before_it_takes_the_peer_for_dead(
    tmp_path: Path, certificates: Certificates, fast: None
) -> None:
    async with hall(tmp_path, certificates) as both:
        await both.opened()
        for _ in range(3):
            time.sleep(12 * moving_transport._TICK_S)  # noqa: ASYNC251 - nothing else runs
            await asyncio.sleep(2 * moving_transport._TICK_S)
        assert both.known.asked == 1


def test_a_home_that_resets_connections_costs_no_other_descriptor(tmp_path: Path) -> None:
    def reset_all(listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                with listening.accept()[0] as accepted:
                    at_once = struct.pack("ii", 1, 0)
                    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)

    async def play() -> None:
        tls = ssl.create_default_context()
        with ThreadPoolExecutor() as aside, socket.create_server((HOME, 0)) as listening:
            place = listening.getsockname()
            keeper = FarKeeper(1, tmp_path, Mock(), Mock(), Hosts(DOOR, {}, lambda: tls, Mock()))
            aside.submit(reset_all, listening)
            for _ in range(_RESETS):
                with pytest.raises(ConnectionError):
                    await keeper._connect_to(place, TlsConnection(Mock()))
                # They get the numbers that are free.
                ours = [socket.socket() for _ in range(4)]
                gc.collect()
                await asyncio.sleep(0)
                for each in ours:
                    os.fstat(each.fileno())
                    each.close()
            # This wakes the thread.
            listening.shutdown(socket.SHUT_RDWR)

    both_loops(play)


async def test_a_link_over_a_slow_network_is_made_and_kept(
    tmp_path: Path, certificates: Certificates
) -> None:
    async with hall(tmp_path, certificates) as both:
        both.proxy.latency_s = 0.2
        both.proxy.reset()
        await both.linked(is_linked=False)
        await both.opened()
        both.far.passage.send(b"a")
        await until(lambda: len(both.inlet.came) == 1)


async def test_a_home_that_says_nothing_is_given_up(
    tmp_path: Path,
    certificates: Certificates,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It accepts, and is silent."""
    monkeypatch.setattr(far_keeper, "HANDSHAKE_S", 0.2)

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Until the door has given up: it may also connect while the test ends.
        with suppress(ConnectionError):
            await reader.read()
        writer.close()

    silent = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    async with silent, hall(tmp_path, certificates) as both:
        both.port_of_home = silent.sockets[0].getsockname()[1]
        both.proxy.reset()
        await until(lambda: both.known.asked > 3)
        assert not both.far.is_linked
    assert "SSL handshake is taking longer" in caplog.text


async def test_a_home_that_says_nothing_is_left_as_soon_as_the_shard_is_elsewhere(
    tmp_path: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is frozen, so that its system accepts connections."""
    # Nothing here waits until a handshake has lasted for too long.
    monkeypatch.setattr(far_keeper, "HANDSHAKE_S", 3600.0)
    frozen = listen_at(["127.0.0.1"], 0, 100)
    async with hall(tmp_path, certificates) as both:
        await both.linked()
        both.port_of_home = frozen[0].getsockname()[1]
        both.proxy.reset()
        await both.linked(is_linked=False)
        await asyncio.sleep(0.3)
        await both.server.open(bound(tmp_path / "1.sock"))
        both.known.host = DOOR
        await both.linked()
    frozen[0].close()


async def test_a_link_that_is_well_is_left_when_the_shard_is_elsewhere(
    tmp_path: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its host cannot reach the store any more, so it answers nothing."""
    monkeypatch.setattr(far_keeper, "_LINKED_S", 0.05)
    async with hall(tmp_path, certificates) as both:
        await both.linked()
        await both.server.open(bound(tmp_path / "1.sock"))
        both.known.host = DOOR
        await until(lambda: both.door_keeper.is_near)
        await both.linked()


async def talk_tls(both: Any, said: bytes) -> bytes:
    """Say this to the home with the door's certificate, and return what comes until it closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", both.port)
    writer.write(b"\0\1")
    await writer.start_tls(both.certificates.door.client, server_hostname="127.0.0.1")
    writer.write(said)
    try:
        async with asyncio.timeout(60):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


@pytest.mark.parametrize(
    "said",
    [
        pack(Kind.BEAT, 0),
        pack(Kind.CLOSED, 1),
        pack(Kind.HELLO, 0, b"x" * 5000),
        pack(Kind.HELLO, 0, b"{}"),
        pack(Kind.HELLO, 0, b"[" * 4000),
        b"\xff" * 100,
    ],
    ids=["beat", "closed", "long", "empty", "deep", "noise"],
)
async def test_what_is_no_greeting_ends_the_connection_without_a_word(
    tmp_path: Path, certificates: Certificates, caplog: pytest.LogCaptureFixture, said: bytes
) -> None:
    async with hall(tmp_path, certificates) as both:
        await both.linked()
        assert await talk_tls(both, said) == b""
        assert "a connection of another host is closed: it brought" in caplog.text
        assert len(both.server._homes) == 1


async def test_a_connection_without_a_greeting_is_closed(
    tmp_path: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiver, "GREETING_S", 0.2)
    async with hall(tmp_path, certificates) as both:
        await both.linked()
        assert await talk_tls(both, pack(Kind.HELLO, 0, b"x" * 50)[:-1]) == b""
        await until(lambda: not both.receiver._coming)


async def test_connections_without_a_greeting_have_room_for_a_number_of_them(
    tmp_path: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiver, "_MOST_COMING", 2)
    async with hall(tmp_path, certificates) as both:
        await both.linked()
        talks = []
        for _ in range(2):
            reader, writer = await asyncio.open_connection("127.0.0.1", both.port)
            writer.write(b"\0\1")
            talks.append((reader, writer))
        await until(lambda: len(both.receiver._coming) == 2)
        reader, writer = await asyncio.open_connection("127.0.0.1", both.port)
        writer.write(b"\0\1")
        async with asyncio.timeout(60):
            assert await reader.read() == b""
        assert len(both.receiver._coming) == 2
        for _, each in [*talks, (reader, writer)]:
            each.close()


async def test_a_connection_that_brings_no_tls_is_closed(
    tmp_path: Path, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    async with hall(tmp_path, certificates) as both:
        await both.linked()
        reader, writer = await asyncio.open_connection("127.0.0.1", both.port)
        writer.write(b"\0\1" + b"GET / HTTP/1.1\r\n\r\n" * 20)
        async with asyncio.timeout(60):
            await reader.read()
        writer.close()
        await until(lambda: "a connection of another host is refused" in caplog.text)
        await until(lambda: not both.receiver._coming)
