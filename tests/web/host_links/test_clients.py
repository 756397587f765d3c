"""Clients of a door on one host, with sessions on another, notice nothing of new connections."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from holdfast.web.forwarding.newcomers import Newcomers
from holdfast.web.forwarding.request_door import Door, DoorParts
from tests.abuse.attacker import frame
from tests.store.store_process import until
from tests.web.forwarding.test_forwarding import DONE, UPGRADE_WITH_COOKIE
from tests.web.host_links.stage import Certificates, Hall, hall
from tests.web.requests import (
    CONNECT,
    HANDSHAKE,
    PUBLISH,
    SUBSCRIBE,
    client_ids,
    encode,
    post_messages,
)
from tests.web.rig import Client, Rig

Renew = Callable[[], Awaitable[None]]


@asynccontextmanager
async def doors(both: Hall) -> AsyncIterator[tuple[Rig, Renew]]:
    """The door, and what lets a new connection take over its link."""

    def made(rig: Rig) -> Door:
        newcomers = Newcomers(None)
        parts = DoorParts(
            *(rig.scheduler, client_ids(), lambda _: 1, {1: both.far}, newcomers.subject_of),
            *(rig.bayeux.state.request_limits, lambda *_: False),
        )
        return Door(parts)

    async def renew() -> None:
        former = both.transport._reads
        assert await both.door_keeper._renew(both.transport)
        assert both.transport._reads is not former

    async with both.rig, Rig(requests=made) as door:
        await both.linked()
        yield door, renew


async def ask(client: Client, *messages: dict[str, Any]) -> bytes:
    """Send a request and wait for its reply."""
    count = len(client.heard().responses)
    client.send_now(post_messages(*messages))
    await until(lambda: len(client.heard().responses) > count)
    return bytes(client.heard().responses[-1].body)


async def test_a_held_connect_outlives_connections_of_the_link(
    tmp_path: Path, certificates: Certificates
) -> None:
    async with hall(tmp_path, certificates) as both, doors(both) as (door, renew):
        client = door.connect()
        for message in (HANDSHAKE, SUBSCRIBE, CONNECT):
            assert DONE in await ask(client, message)
        count = len(client.heard().responses)
        client.send_now(post_messages(CONNECT))
        [session] = both.rig.bayeux.state.sessions
        await until(lambda: session.held_connect is not None)
        for _ in range(3):
            await renew()
        assert len(client.heard().responses) == count
        both.rig.server.publish("/news", "late")
        await until(lambda: len(client.heard().responses) > count)
        assert b'"data":"late"' in client.heard().responses[-1].body
        # The receipt crosses the link, too.
        await until(lambda: both.rig.bayeux.state.hub.counters.acked == 1)
        assert session.pauses == 0


async def test_a_socket_outlives_connections_of_the_link(
    tmp_path: Path, certificates: Certificates
) -> None:
    async with hall(tmp_path, certificates) as both, doors(both) as (door, renew):
        client = door.connect()
        client.send_now(UPGRADE_WITH_COOKIE)
        await until(lambda: b"101 " in client.transport.written)
        for message in (HANDSHAKE, SUBSCRIBE, {**CONNECT, "connectionType": "websocket"}):
            count = client.transport.written.count(DONE)
            client.send_now(frame(encode(message)))
            await until(lambda count=count: client.transport.written.count(DONE) > count)  # type: ignore[misc]
        for n in range(3):
            await renew()
            both.rig.server.publish("/news", f"news {n}")
            await until(lambda n=n: f"news {n}".encode() in client.transport.written)  # type: ignore[misc]
        assert not client.transport.is_closing()


async def test_publishes_on_their_way_are_handled_once_while_a_link_moves(
    tmp_path: Path, certificates: Certificates
) -> None:
    async with hall(tmp_path, certificates) as both, doors(both) as (door, renew):
        clients = [door.connect() for _ in range(4)]
        for client in clients:
            assert DONE in await ask(client, HANDSHAKE)
        handled = both.rig.bayeux.state.hub.counters
        before = handled.published
        is_over = False

        async def publish(client: Client) -> int:
            count = 0
            while not is_over:
                assert DONE in await ask(client, PUBLISH)
                count += 1
            return count

        publishing = [asyncio.create_task(publish(each)) for each in clients]
        for _ in range(10):
            await renew()
        is_over = True
        counts = await asyncio.gather(*publishing)
        assert handled.published - before == sum(counts) > 10


async def test_what_waits_for_a_lost_link_is_sent_over_the_next_one(
    tmp_path: Path, certificates: Certificates
) -> None:
    async with hall(tmp_path, certificates) as both, doors(both) as (door, _):
        client = door.connect()
        for message in (HANDSHAKE, SUBSCRIBE, CONNECT):
            assert DONE in await ask(client, message)
        client.send_now(post_messages(CONNECT))
        [session] = both.rig.bayeux.state.sessions
        await until(lambda: session.held_connect is not None)
        both.proxy.reset()
        await both.linked(is_linked=False)
        await both.linked()
        await until(lambda: session.held_connect is not None)
        both.rig.server.publish("/news", "late")
        await until(lambda: b'"data":"late"' in client.heard().responses[-1].body)
