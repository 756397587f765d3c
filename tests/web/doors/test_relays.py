"""TLS connections stay in the process that leaves, which relays their bytes."""

import asyncio
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest

from holdfast.web.websockets import websocket
from tests.store.store_process import until
from tests.web.certificates import Authority
from tests.web.doors.stage import House, Stage, stage
from tests.web.doors.test_handing_over import (
    DONE,
    GET,
    HELLO,
    SAY,
    answered,
    descriptors,
    greet,
    of,
    opened,
)
from tests.web.requests import CONNECT, PUBLISH
from tests.web.rig import Rig, without_faults


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def server_tls(authority: Authority) -> ssl.SSLContext:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(*authority.issue("server"))
    tls.load_verify_locations(authority.file)
    tls.verify_mode = ssl.CERT_OPTIONAL
    return tls


async def relay(house: Stage) -> "asyncio.Task[Any]":
    """Hand all connections over; returns what ends when no relay is left."""
    await greet(house)
    await house.leave()
    await house.new_serves()
    handing = asyncio.create_task(house.hand_over())
    for _ in range(3000):
        if not house.old.listener.lanes() and house.new.listener.lanes():
            break
        await asyncio.sleep(0.01)
    return handing


async def test_a_connection_is_relayed_until_its_next_response(authority: Authority) -> None:
    async with stage(server_tls(authority)) as house:
        client = await house.connect(ssl=authority.client())
        await client.ask(HELLO)
        handing = await relay(house)
        said = await client.ask(SAY)
        assert DONE in said.body
        assert said.headers["connection"] == "close"
        assert await client.is_closed()
        done, adopted = await handing
        assert (done.passed, done.relayed, done.closed, adopted) == (1, 1, 0, 1)


async def test_a_response_of_aiohttp_ends_a_relayed_connection_too(authority: Authority) -> None:
    async with stage(server_tls(authority)) as house:
        client = await house.connect(ssl=authority.client())
        await client.ask(GET)
        handing = await relay(house)
        said = await client.ask(GET)
        assert (said.body, said.headers["connection"]) == (b"ok\n", "close")
        assert await client.is_closed()
        await handing


async def test_other_connections_of_the_successor_stay_open(authority: Authority) -> None:
    async with stage(server_tls(authority)) as house:
        client = await house.connect(ssl=authority.client())
        await client.ask(HELLO)
        handing = await relay(house)
        await client.ask(SAY)
        newcomer = await house.connect(ssl=authority.client())
        for _ in range(2):
            assert "connection" not in (await newcomer.ask(SAY)).headers
        await handing


async def test_the_successor_knows_the_client_and_its_certificate(authority: Authority) -> None:
    async with stage(server_tls(authority)) as house:
        secure = authority.client(authority.issue("ada", "staff"))
        client = await house.connect(ssl=secure)
        await client.ask(GET)
        handing = await relay(house)
        [lane] = house.new.listener.lanes()
        peers = house.new.rig.endpoint.peers
        caller = peers.caller({}, lane.transport)  # type: ignore[arg-type]
        assert (caller.address, caller.is_secure) == ("127.0.0.1", True)
        subject = (("commonName", "ada"), ("organizationalUnitName", "staff"))
        assert caller.tls_subject == subject
        client.writer.close()
        await handing


async def test_the_process_that_left_ends_when_its_clients_have_left(authority: Authority) -> None:
    async with stage(server_tls(authority)) as house:
        clients = [await house.connect(ssl=authority.client()) for _ in range(5)]
        for client in clients:
            await client.ask(GET)
        handing = await relay(house)
        for client in clients:
            assert not handing.done()
            client.writer.close()
        await handing
        await until(lambda: house.new.listener.lanes() == [])


@pytest.mark.slow
async def test_a_relay_goes_on_if_the_successor_leaves_too(authority: Authority) -> None:
    async with stage(server_tls(authority)) as house, Rig() as rig:
        client = await house.connect(ssl=authority.client())
        await client.ask(HELLO)
        first = await relay(house)
        third = House(rig, house.new.listening)
        second = await relay(Stage(house.new, third, house.tls))
        done, adopted = await second
        assert (done.passed, done.relayed, done.closed, adopted) == (1, 0, 0, 1)
        [lane] = third.listener.lanes()
        assert lane.transport is not None
        assert lane.transport.get_extra_info("peername")[0] == "127.0.0.1"
        said = await client.ask(SAY)
        assert DONE in said.body
        assert said.headers["connection"] == "close"
        assert await client.is_closed()
        await first


async def test_relays_end_after_their_time(authority: Authority) -> None:
    async with stage(server_tls(authority)) as house:
        client = await house.connect(ssl=authority.client())
        await client.ask(GET)
        house.last_limit_s = 0.1
        handing = await relay(house)
        await handing
        assert await client.is_closed()


async def test_much_is_relayed_both_ways(authority: Authority) -> None:
    async with stage(server_tls(authority)) as house:
        client = await opened(house, ssl=authority.client())
        handing = await relay(house)
        large = {**PUBLISH, "data": "x" * 1_000_000}
        client.send(of(client, large))
        await answered(client, PUBLISH["id"])
        await handing


async def test_a_relayed_socket_is_closed_after_its_next_reply(authority: Authority) -> None:
    async with stage(server_tls(authority)) as house:
        client = await opened(house, ssl=authority.client())
        handing = await relay(house)
        client.send(of(client, PUBLISH))
        await answered(client, PUBLISH["id"])
        assert (await client.until(b"the server restarts")).startswith(b"\x88\x15\x03\xf4")
        client.writer.close()
        await handing


@pytest.mark.slow
async def test_a_silent_relayed_socket_is_closed_after_a_while(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket, "_RELAYED_S", 0.1)
    async with stage(server_tls(authority)) as house:
        client = await opened(house, ssl=authority.client())
        client.send(of(client, CONNECT))
        await answered(client, CONNECT["id"])
        handing = await relay(house)
        assert b"\x03\xf4" in await client.until(b"the server restarts")
        client.writer.close()
        await handing


@pytest.mark.slow
async def test_no_descriptor_of_a_relay_is_left_behind(authority: Authority) -> None:
    async with stage(server_tls(authority)) as house:
        await (await house.connect(ssl=authority.client())).ask(GET)
        await house.end_talks()
        await until(lambda: house.old.listener.lanes() == [])
        await asyncio.sleep(0.05)
        before = descriptors()
        clients = [await house.connect(ssl=authority.client()) for _ in range(10)]
        for client in clients:
            await client.ask(GET)
        with without_faults():
            handing = await relay(house)
            for client in clients:
                await client.ask(GET)
                assert await client.is_closed()
            await handing
        await house.end_talks()
        house.new.listener.stop_accepting()
        await until(lambda: descriptors() == before)


async def test_a_connection_whose_handshake_ends_during_the_leave_is_relayed(
    authority: Authority,
) -> None:
    async with stage(server_tls(authority)) as house:
        place = {"host": None, "port": None, "sock": await connected(house)}
        await house.leave()
        # What TLS writes after the handshake stays in the server's buffer.
        tls = {"ssl": authority.client(), "server_hostname": "127.0.0.1"}
        client = await house.connect(**place, **tls)
        await house.new_serves()
        handing = asyncio.create_task(house.hand_over())
        assert (await client.ask(HELLO)).status == 200
        done, _ = await handing
        assert (done.relayed, done.closed) == (1, 0)


async def connected(house: Stage) -> socket.socket:
    """A connection that the old server has accepted, and that has said nothing."""
    connection = socket.create_connection(("127.0.0.1", house.old.port))
    connection.setblocking(False)
    for _ in range(3000):
        if house.old.listener.is_settling:
            break
        await asyncio.sleep(0.01)
    return connection
