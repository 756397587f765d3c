"""A home, or a door, that leaves its place to another process costs its clients nothing."""

from holdfast.web.scheduling.reading_gate import Reading
from tests.abuse.attacker import frame
from tests.web.forwarding.stage import TURNS, Pair, pair
from tests.web.forwarding.test_forwarding import (
    DONE,
    UPGRADE_WITH_COOKIE,
    enter,
    say,
    sessions_of,
)
from tests.web.requests import CONNECT, HANDSHAKE, PUBLISH, SUBSCRIBE, encode
from tests.web.rig import Client

OVER_SOCKET = {**CONNECT, "connectionType": "websocket"}


async def test_a_home_that_pauses_gets_no_exchange_until_it_resumes() -> None:
    async with pair() as both:
        client = await enter(both)
        both.at_home.pause()
        await both.settle(client)
        assert both.at_home.is_quiet
        assert await say(client, PUBLISH) is None
        assert both.at_home.is_quiet
        both.at_home.resume()
        await both.settle(client)
        assert DONE in client.heard().responses[-1].body
        assert not both.at_home.is_quiet


async def test_a_home_does_not_wait_for_a_door_that_leaves_and_has_read_more() -> None:
    async with pair() as both:
        client = await enter(both)
        both.far.leave()
        await both.settle(client)
        assert both.at_home.is_quiet
        assert await say(client, PUBLISH)
        assert both.at_home.is_quiet
        both.wire.lose()
        both.link()
        await both.settle(client)
        assert both.at_home.is_quiet
        both.far.stay()
        assert await say(client, PUBLISH)
        assert not both.at_home.is_quiet


async def test_exchanges_wait_for_the_next_home() -> None:
    async with pair() as both:
        client = await enter(both)
        both.at_home.pause()
        await both.settle(client)
        assert await say(client, PUBLISH) is None
        both.wire.lose()
        both.link()
        await both.settle(client)
        assert DONE in client.heard().responses[-1].body


async def test_a_socket_outlives_a_home_that_has_paused() -> None:
    async with pair() as both:
        client = both.connect()
        await client.send(UPGRADE_WITH_COOKIE, frame(encode(HANDSHAKE)))
        await both.settle(client)
        for message in (SUBSCRIBE, OVER_SOCKET):
            await client.send(frame(encode(message)))
            await both.settle(client)
        both.at_home.pause()
        await both.settle(client)
        both.wire.lose()
        both.link()
        await client.send(frame(encode(OVER_SOCKET)))
        await both.settle(client)
        both.home.server.publish("/news", "late")
        await both.settle(client)
        assert b'"data":"late"' in client.transport.written
        assert b"the server restarts" not in client.transport.written


async def test_a_door_that_leaves_gets_answers_to_held_connects() -> None:
    async with pair() as both:
        client = await enter(both)
        assert await say(client, CONNECT) is None
        both.far.settle()
        assert not both.far.is_settled
        await both.settle(client)
        assert both.far.is_settled
        assert DONE in client.heard().responses[-1].body
        [session] = sessions_of(both.home)
        assert session.held_connect is None


async def test_a_door_that_leaves_waits_for_whatever_the_home_has_not_answered() -> None:
    async with pair() as both:
        client = await enter(both)
        assert both.far.is_answered
        assert await say(client, CONNECT) is None
        # As what waits for the store, or until all shards know of a subscription.
        assert both.far.is_settled
        assert not both.far.is_answered
        both.far.settle()
        await both.settle(client)
        assert both.far.is_answered


async def test_a_door_that_leaves_gets_answers_on_sockets_and_then_no_pushes() -> None:
    async with pair() as both:
        client = both.connect()
        await client.send(UPGRADE_WITH_COOKIE, frame(encode(HANDSHAKE)))
        await both.settle(client)
        # The first connect is answered at once.
        for message in (SUBSCRIBE, OVER_SOCKET, OVER_SOCKET):
            await client.send(frame(encode(message)))
            await both.settle(client)
        [session] = sessions_of(both.home)
        assert session.held_connect is not None
        before = client.transport.written.count(b"/meta/connect")
        both.far.settle()
        await both.settle(client)
        assert both.far.is_settled
        assert client.transport.written.count(b"/meta/connect") == before + 1
        both.home.server.publish("/news", "late")
        both.far.let_go()
        await client.settle(TURNS)
        assert b'"data":"late"' not in client.transport.written
        assert (session.pipe, session.queue.count, session.pauses) == (None, 1, 0)


async def with_publish_that_waits(both: Pair) -> Client:
    """A client whose reply over a socket waits for the store of the home."""
    client = both.connect()
    keyed = {**PUBLISH, "ext": {"delivery": {"key": "once"}}}
    await client.send(UPGRADE_WITH_COOKIE, frame(encode(HANDSHAKE)))
    await both.settle(client)
    await client.send(frame(encode(keyed)))
    await both.settle(client)
    both.far.settle()
    await both.settle(client)
    return client


async def test_a_door_that_leaves_waits_for_replies_on_sockets_that_wait_for_the_store() -> None:
    async with pair() as both:
        client = await with_publish_that_waits(both)
        assert not both.far.is_answered
        both.home.keeper.turn()
        await both.settle(client)
        assert b'"id":"4"' in client.transport.written
        assert both.far.is_answered
        both.far.give_up()
        await both.settle(client)
        assert b"the server restarts" not in client.transport.written


async def test_a_door_that_leaves_closes_sockets_whose_replies_would_not_come() -> None:
    async with pair() as both:
        client = await with_publish_that_waits(both)
        both.far.give_up()
        await both.settle(client)
        assert (1012).to_bytes(2, "big") + b"the server restarts" in client.transport.written


async def test_a_door_that_leaves_refuses_what_waits_for_a_link() -> None:
    async with pair() as both:
        client = await enter(both)
        both.wire.lose()
        assert await say(client, PUBLISH) is None
        both.far.settle()
        await both.settle(client)
        assert client.heard().responses[-1].status == 503
        assert both.far.is_settled


async def test_a_home_that_has_given_everything_away_handles_nothing_more() -> None:
    async with pair() as both:
        client = await enter(both)
        both.home.endpoint.gate.state = Reading.STILL
        refusal = await say(client, PUBLISH)
        assert refusal is not None
        assert refusal.status == 503
        assert b"unknown" not in refusal.body
        both.home.endpoint.gate.open()
        [session] = sessions_of(both.home)
        assert session.queue.count == 0


async def test_a_door_that_leaves_refuses_what_nobody_has_answered() -> None:
    async with pair() as both:
        client = await enter(both)
        both.wire.other.is_cut = True
        assert await say(client, PUBLISH) is None
        both.far.give_up()
        await both.settle(client)
        refusal = client.heard().responses[-1]
        assert refusal.status == 503
        assert b"unknown" in refusal.body
