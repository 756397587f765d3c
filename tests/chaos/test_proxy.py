"""The proxy does to connections what its methods say, and nothing else."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.chaos.proxy import Address, Proxy, Way
from tests.store.store_process import until

SOON_S = 0.05
TIMEOUT_S = 30.0

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Echo:
    """A server that echoes everything twice, and records what it received."""

    def __init__(self) -> None:
        self.heard = b""
        self.connections = 0
        self._writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.append(writer)
        try:
            while data := await reader.read(65536):
                self.heard += data
                writer.write(data + data)
        except ConnectionError:
            pass
        self.connections -= 1
        writer.close()

    def close(self) -> None:
        for writer in self._writers:
            writer.transport.abort()


@pytest.fixture
async def echo() -> AsyncIterator[Echo]:
    echo = Echo()
    yield echo
    echo.close()


@pytest.fixture
async def proxy(echo: Echo) -> AsyncIterator[Proxy]:
    server = await asyncio.start_server(echo.serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    async with server, Proxy(Address(host, port)) as proxy:
        yield proxy


@pytest.fixture
async def client(proxy: Proxy) -> AsyncIterator[Streams]:
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    yield reader, writer
    writer.transport.abort()


async def ask(client: Streams, data: bytes) -> bytes:
    reader, writer = client
    writer.write(data)
    async with asyncio.timeout(TIMEOUT_S):
        return await reader.readexactly(2 * len(data))


async def is_cut(client: Streams) -> bool:
    try:
        async with asyncio.timeout(TIMEOUT_S):
            return await client[0].read() == b""
    except ConnectionResetError:
        return True


async def is_silent(client: Streams) -> bool:
    try:
        async with asyncio.timeout(SOON_S):
            await client[0].readexactly(1)
    except TimeoutError:
        return True
    return False


async def test_without_faults_everything_passes(client: Streams, proxy: Proxy) -> None:
    assert await ask(client, b"a") == b"aa"
    large = b"b" * 1_000_000
    assert await ask(client, large) == large * 2
    assert proxy.connections == 1


async def test_the_end_of_a_side_is_forwarded(client: Streams, echo: Echo, proxy: Proxy) -> None:
    await ask(client, b"a")
    client[1].write_eof()
    assert await is_cut(client)
    await until(lambda: (echo.connections, proxy.connections) == (0, 0))


async def test_unix_sockets_are_reached_too(echo: Echo, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    async with await asyncio.start_unix_server(echo.serve, path), Proxy(path) as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        assert await ask((reader, writer), b"a") == b"aa"
        proxy.reset()
        assert await is_cut((reader, writer))
        writer.close()


async def test_connections_to_an_absent_server_are_cut(proxy: Proxy) -> None:
    proxy.upstream = Address("127.0.0.1", 1)
    client = await asyncio.open_connection("127.0.0.1", proxy.port)
    assert await is_cut(client)
    client[1].close()


async def test_the_server_may_change_its_address(
    client: Streams, proxy: Proxy, tmp_path: Path
) -> None:
    other = Echo()
    path = tmp_path / "socket"
    async with await asyncio.start_unix_server(other.serve, path):
        proxy.upstream = path
        moved = await asyncio.open_connection("127.0.0.1", proxy.port)
        assert await ask(moved, b"b") == b"bb"
        assert other.heard == b"b"
        moved[1].close()


async def test_latency_is_added_both_ways(client: Streams, proxy: Proxy) -> None:
    proxy.latency_s = SOON_S
    before_s = asyncio.get_running_loop().time()
    assert await ask(client, b"a") == b"aa"
    assert asyncio.get_running_loop().time() - before_s >= 2 * SOON_S


async def test_a_throttled_connection_is_slow_but_complete(client: Streams, proxy: Proxy) -> None:
    proxy.bytes_per_s = 10_000.0
    before_s = asyncio.get_running_loop().time()
    assert await ask(client, b"a" * 1000) == b"a" * 2000
    assert asyncio.get_running_loop().time() - before_s >= 0.15


async def test_a_reset_cuts_both_sides(client: Streams, echo: Echo, proxy: Proxy) -> None:
    await ask(client, b"a")
    proxy.reset()
    assert await is_cut(client)
    await until(lambda: (echo.connections, proxy.connections) == (0, 0))


async def test_after_a_reset_new_connections_work(client: Streams, proxy: Proxy) -> None:
    proxy.reset()
    again = await asyncio.open_connection("127.0.0.1", proxy.port)
    assert await ask(again, b"a") == b"aa"
    again[1].close()


async def test_new_connections_can_be_refused(client: Streams, proxy: Proxy) -> None:
    assert await ask(client, b"a") == b"aa"
    proxy.refuse()
    refused = await asyncio.open_connection("127.0.0.1", proxy.port)
    assert await is_cut(refused)
    refused[1].close()
    assert await ask(client, b"a") == b"aa"


async def test_an_eaten_response_was_written_and_never_arrives(
    client: Streams, echo: Echo, proxy: Proxy
) -> None:
    proxy.eat_responses()
    client[1].write(b"a")
    assert await is_cut(client)
    assert (echo.heard, proxy.eaten) == (b"a", 1)
    again = await asyncio.open_connection("127.0.0.1", proxy.port)
    assert await ask(again, b"b") == b"bb"
    again[1].close()


async def test_each_connection_loses_its_next_events_and_nothing_else(
    client: Streams, proxy: Proxy
) -> None:
    other = await asyncio.open_connection("127.0.0.1", proxy.port)
    await ask(other, b"a")
    proxy.eat_events()
    for each in (client, other):
        assert await ask(each, b"[]") == b"[][]"
        each[1].write(b'[{"data":1}]')
        assert await is_cut(each)
    assert proxy.eaten == 2
    other[1].close()


async def test_a_black_hole_swallows_everything_and_cuts_nothing(
    client: Streams, echo: Echo, proxy: Proxy
) -> None:
    await ask(client, b"a")
    proxy.black_hole()
    client[1].write(b"b")
    assert await is_silent(client)
    assert (echo.heard, echo.connections) == (b"a", 1)


async def test_the_server_does_not_notice_who_leaves_through_a_black_hole(
    client: Streams, echo: Echo, proxy: Proxy
) -> None:
    await ask(client, b"a")
    proxy.black_hole()
    client[1].close()
    await asyncio.sleep(SOON_S)
    assert echo.connections == 1


async def test_connections_that_lost_bytes_are_cut_when_they_heal(
    client: Streams, proxy: Proxy
) -> None:
    quiet = await asyncio.open_connection("127.0.0.1", proxy.port)
    await ask(quiet, b"a")
    proxy.black_hole()
    client[1].write(b"b")
    await until(lambda: any(link.is_spoilt for link in proxy._links))
    proxy.heal()
    assert await is_cut(client)
    assert await ask(quiet, b"c") == b"cc"
    quiet[1].close()


@pytest.mark.parametrize(("deaf", "heard"), [(Way.UP, b""), (Way.DOWN, b"a")])
async def test_one_direction_can_fail_alone(
    client: Streams, echo: Echo, proxy: Proxy, deaf: Way, heard: bytes
) -> None:
    proxy.one_way(deaf)
    client[1].write(b"a")
    await until(lambda: echo.heard == heard)
    assert await is_silent(client)
    assert echo.heard == heard


async def test_a_close_can_be_slow(client: Streams, echo: Echo, proxy: Proxy) -> None:
    await ask(client, b"a")
    proxy.slow_close_s = 2 * SOON_S
    before_s = asyncio.get_running_loop().time()
    client[1].write_eof()
    await until(lambda: echo.connections == 0)
    assert asyncio.get_running_loop().time() - before_s >= 2 * SOON_S


async def test_a_healed_proxy_has_no_faults(client: Streams, proxy: Proxy) -> None:
    proxy.latency_s = proxy.slow_close_s = 9.0
    proxy.bytes_per_s = 1.0
    proxy.refuse()
    proxy.eat_responses(5)
    proxy.eat_events()
    proxy.black_hole()
    proxy.heal()
    assert await ask(client, b'"data":' * 100) == b'"data":' * 200
    again = await asyncio.open_connection("127.0.0.1", proxy.port)
    assert await ask(again, b"b") == b"bb"
    again[1].close()
