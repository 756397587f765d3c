"""The Python client with other servers, which do not know Holdfast's extensions."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from functools import cache

import pytest

from holdfast import Client, ClientState, Message, ReplyError
from tests.client.peers import COMETD_JAVA, COMETD_NODE, FAYE, Peer, RunningPeer

pytestmark = pytest.mark.untraced

PEERS = [COMETD_JAVA, COMETD_NODE, FAYE]
ALL = ("websocket", "long-polling")
LIMIT_S = 60
Run = Callable[[Peer], RunningPeer]

over_each_transport = pytest.mark.parametrize(
    ("peer", "transport"),
    [
        pytest.param(peer, transport, id=f"{peer.name}-{transport}")
        for peer in PEERS
        for transport in peer.transports
    ],
)
with_each = pytest.mark.parametrize("peer", PEERS, ids=lambda peer: str(peer.name))


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    """Starts a server when it is first asked for."""
    running: list[RunningPeer] = []

    @cache
    def run(peer: Peer) -> RunningPeer:
        peer.require()
        running.append(RunningPeer(peer))
        return running[-1]

    yield run
    for each in running:
        each.stop()


def client_of(running: RunningPeer, *transports: str) -> Client:
    """A client that tries often to reach the server."""
    return Client(running.url, transports=transports or ALL, longest_pause_s=0.2)


async def collect(heard: asyncio.Queue[Message], count: int) -> list[object]:
    async with asyncio.timeout(LIMIT_S):
        return [(await heard.get()).data for _ in range(count)]


@over_each_transport
async def test_a_client_receives_its_own_messages_and_those_of_others(
    run: Run, peer: Peer, transport: str
) -> None:
    running, heard = run(peer), asyncio.Queue[Message]()
    root = f"/others/{transport}"
    async with client_of(running, transport) as client, client_of(running, transport) as other:
        await client.subscribe(f"{root}/name", heard.put_nowait)
        await other.publish(f"{root}/name", {"by": "another"})
        assert await collect(heard, 1) == [{"by": "another"}]
        await asyncio.gather(*(client.publish(f"{root}/name", number) for number in range(500)))
        assert await collect(heard, 500) == [*range(500)]


@over_each_transport
async def test_messages_that_are_too_large_for_one_request_all_arrive(
    run: Run, peer: Peer, transport: str
) -> None:
    channel, heard = f"/others/large/{transport}", asyncio.Queue[Message]()
    # CometD for Java closes a WebSocket at frames of more than 64 KiB.
    large = [f"{number} {'x' * 2000}" for number in range(50)]
    async with client_of(run(peer), transport) as client:
        await client.subscribe(channel, heard.put_nowait)
        await asyncio.gather(*(client.publish(channel, each) for each in large))
        assert await collect(heard, len(large)) == large


@over_each_transport
async def test_patterns_cover_channels_and_a_loop_ends(
    run: Run, peer: Peer, transport: str
) -> None:
    root, deep = f"/others/patterns/{transport}", asyncio.Queue[Message]()
    async with client_of(run(peer), transport) as client:
        # Of patterns that overlap, CometD for Node would send a copy each.
        await client.subscribe(f"{root}/deep/**", deep.put_nowait)
        async with client.subscribe(f"{root}/*") as shallow:
            for channel in ("a/b", "deep/a/b", "a", "deep/a"):
                await client.publish(f"{root}/{channel}", channel)
            async with asyncio.timeout(LIMIT_S):
                assert (await anext(shallow)).data == "a"
        for channel in ("b", "deep/b"):
            await client.publish(f"{root}/{channel}", channel)
        assert await collect(deep, 3) == ["deep/a/b", "deep/a", "deep/b"]


@over_each_transport
async def test_refusals_of_the_server_are_raised(run: Run, peer: Peer, transport: str) -> None:
    async with client_of(run(peer), transport) as client:
        with pytest.raises(ReplyError):
            await client.publish("nonsense", 1)
        with pytest.raises(ReplyError):
            await client.subscribe("/meta/nonsense")
        await client.publish("/others/allowed", 1)


@over_each_transport
async def test_a_client_disconnects_when_it_closes(
    run: Run, peer: Peer, transport: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "holdfast.client")
    async with client_of(run(peer), transport) as client:
        await client.subscribe("/others/left", lambda message: None)
    assert client.state is ClientState.CLOSED
    assert "was not told" not in caplog.text


@with_each
async def test_a_client_uses_a_transport_that_the_server_offers(run: Run, peer: Peer) -> None:
    async with client_of(run(peer)) as client, client.subscribe("/others/any") as subscription:
        await client.publish("/others/any", "hello")
        async with asyncio.timeout(LIMIT_S):
            assert (await anext(subscription)).data == "hello"


@with_each
async def test_a_client_reconnects_when_the_server_is_killed_and_restarted(
    run: Run, peer: Peer
) -> None:
    running, back = run(peer), set[str]()
    async with AsyncExitStack() as stack:
        for transport in peer.transports:
            client = await stack.enter_async_context(client_of(running, transport))
            await client.subscribe(f"/others/{transport}", lambda message: back.add(message.data))
        running.restart()
        async with client_of(running) as publisher, asyncio.timeout(LIMIT_S):
            # A client that has not subscribed again yet does not get the first of these.
            while back != {*peer.transports}:
                for transport in peer.transports:
                    await publisher.publish(f"/others/{transport}", transport)
