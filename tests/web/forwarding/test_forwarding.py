"""A client whose session another process has notices nothing of it."""

import asyncio
from typing import Any

import pytest

from holdfast.web.forwarding import parking
from tests.abuse.attacker import frame
from tests.web.forwarding.stage import TURNS, Pair, pair
from tests.web.requests import (
    CLIENT_ID,
    CONNECT,
    COOKIE,
    DISCONNECT,
    HANDSHAKE,
    PUBLISH,
    SUBSCRIBE,
    encode,
    post_messages,
)
from tests.web.rig import Client, Response
from tests.web.test_faults import UPGRADE

DONE = b'"successful":true'
HELLO = post_messages({**HANDSHAKE, "ext": {}})
UPGRADE_WITH_COOKIE = UPGRADE[:-2] + f"Cookie: {COOKIE}\r\n\r\n".encode()


async def say(client: Client, *messages: dict[str, Any]) -> Response | None:
    """Send a request; return the response, or None if it is held."""
    count = len(client.heard().responses)
    client.send_now(post_messages(*messages))
    await client.settle(TURNS)
    responses = client.heard().responses[count:]
    return responses[0] if responses else None


async def enter(both: Pair) -> Client:
    """A client with a session of the home, whose next connect is held."""
    client = both.connect()
    for message in (HANDSHAKE, SUBSCRIBE, CONNECT):
        response = await say(client, message)
        assert response is not None
        assert DONE in response.body, response
    return client


def sessions_of(rig: Any) -> list[Any]:
    return [*rig.bayeux.state.sessions]


async def test_the_session_is_at_the_home_and_the_connection_at_the_door() -> None:
    async with pair() as both:
        await enter(both)
        assert [each.client_id for each in sessions_of(both.home)] == [CLIENT_ID]
        assert sessions_of(both.door) == []


async def test_a_held_connect_gets_what_the_home_publishes() -> None:
    async with pair() as both:
        client = await enter(both)
        assert await say(client, CONNECT) is None
        both.home.server.publish("/news", "late")
        await both.settle(client)
        last = client.heard().responses[-1]
        assert b'"data":"late"' in last.body
        [session] = sessions_of(both.home)
        assert (session.queue.count, session.pauses) == (0, 0)
        assert both.home.bayeux.state.hub.counters.acked == 1


async def test_the_home_is_told_of_a_new_socket_before_its_client_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with pair() as both:
        both.door.bayeux.identities.tell_others = both.far.tell_newcomer
        client = both.connect()
        answered = []

        def write(data: bytes) -> None:
            answered.append(bytes(client.transport.written))

        monkeypatch.setattr(both.wire, "write", write)
        await client.send(UPGRADE)
        await both.settle(client)
        assert b" 101 " in client.transport.written
        assert answered[0] == b""


async def test_messages_that_a_lost_connection_did_not_take_come_with_the_next_connect() -> None:
    async with pair() as both:
        client = await enter(both)
        assert await say(client, CONNECT) is None
        client.transport.lose()
        both.home.server.publish("/news", "late")
        await client.settle(TURNS)
        [session] = sessions_of(both.home)
        assert (session.queue.count, session.held_connect) == (1, None)
        again = both.connect()
        response = await say(again, CONNECT)
        assert response is not None
        assert b'"data":"late"' in response.body


async def test_an_answer_that_crosses_the_end_of_the_connection_is_not_lost() -> None:
    async with pair() as both:
        client = await enter(both)
        assert await say(client, CONNECT) is None
        both.home.server.publish("/news", "late")
        # The answer is on its way.
        client.transport.lose()
        await client.settle(TURNS)
        [session] = sessions_of(both.home)
        assert session.queue.count == 1
        response = await say(both.connect(), CONNECT)
        assert response is not None
        assert b'"data":"late"' in response.body


async def test_the_door_refuses_ids_that_the_deployment_has_not_made() -> None:
    async with pair() as both:
        client = both.connect()
        invented = CLIENT_ID[:-1] + ("A" if CLIENT_ID[-1] != "A" else "B")
        response = await say(client, {**CONNECT, "clientId": invented})
        assert response is not None
        assert b"402::session_unknown" in response.body
        assert both.far._last == 0


async def test_requests_wait_for_a_home_without_a_link() -> None:
    async with pair() as both:
        client = await enter(both)
        both.wire.lose()
        assert await say(client, PUBLISH) is None
        both.link()
        await both.settle(client)
        assert DONE in client.heard().responses[-1].body


async def test_requests_that_wait_too_long_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parking, "PATIENCE_S", 0.01)
    async with pair() as both:
        client = await enter(both)
        both.wire.lose()
        asked, now = len(client.heard().responses), asyncio.get_running_loop().time
        began = now()
        client.send_now(post_messages(PUBLISH))
        while len(client.heard().responses) == asked:
            await client.settle(1)
        assert now() >= began + 0.01
        last = client.heard().responses[-1]
        assert (last.status, last.headers["retry-after"]) == (503, "1")
        assert b"503::server_busy" in last.body


async def test_a_publish_on_a_broken_link_is_refused_because_its_outcome_is_unknown() -> None:
    async with pair() as both:
        client = await enter(both)
        both.wire.is_cut = True
        assert await say(client, PUBLISH) is None
        both.wire.lose()
        await both.settle(client)
        last = client.heard().responses[-1]
        assert last.status == 503
        assert b"503:unknown:server_busy" in last.body


async def test_a_held_connect_outlives_a_broken_link() -> None:
    async with pair() as both:
        client = await enter(both)
        assert await say(client, CONNECT) is None
        both.wire.lose()
        await both.settle(client)
        both.link()
        await both.settle(client)
        both.home.server.publish("/news", "late")
        await both.settle(client)
        assert b'"data":"late"' in client.heard().responses[-1].body


async def test_what_a_broken_link_did_not_confirm_comes_again() -> None:
    async with pair() as both:
        client = await enter(both)
        assert await say(client, CONNECT) is None
        both.wire.other.is_cut = True
        both.home.server.publish("/news", "late")
        await both.settle(client)
        both.wire.lose()
        both.link()
        await both.settle(client)
        assert b'"data":"late"' in client.heard().responses[-1].body


async def test_a_socket_gets_pushes_of_the_home() -> None:
    async with pair() as both:
        client = both.connect()
        await client.send(UPGRADE_WITH_COOKIE, frame(encode(HANDSHAKE)))
        await both.settle(client)
        for message in (SUBSCRIBE, {**CONNECT, "connectionType": "websocket"}):
            await client.send(frame(encode(message)))
            await both.settle(client)
        for data in ("one", "two", "three"):
            both.home.server.publish("/news", data)
            await both.settle(client)
        written = bytes(client.transport.written)
        assert written.count(b'"data":"') == 3
        assert written.index(b'"one"') < written.index(b'"two"') < written.index(b'"three"')
        [session] = sessions_of(both.home)
        assert (session.queue.count, session.pauses) == (0, 0)
        client.transport.lose()
        await client.settle(TURNS)
        assert session.pipe is None


async def test_a_socket_is_closed_when_its_home_has_gone() -> None:
    async with pair() as both:
        client = both.connect()
        await client.send(UPGRADE_WITH_COOKIE, frame(encode(HANDSHAKE)))
        await both.settle(client)
        both.wire.lose()
        await both.settle(client)
        assert (1012).to_bytes(2, "big") + b"the server restarts" in client.transport.written


async def test_a_message_on_a_socket_waits_for_a_home_that_moves() -> None:
    async with pair() as both:
        client = both.connect()
        await client.send(UPGRADE_WITH_COOKIE, frame(encode(HANDSHAKE)))
        await both.settle(client)
        both.at_home.pause()
        await both.settle(client)
        both.wire.lose()
        await client.send(frame(encode(SUBSCRIBE)))
        await both.settle(client)
        assert both.far.may_send_soon
        both.link()
        await both.settle(client)
        assert not both.far.may_send_soon
        assert client.transport.written.count(DONE) == 2


async def test_a_socket_whose_message_is_refused_is_closed_here_and_not_handed_over() -> None:
    async with pair() as both:
        client = both.connect()
        await client.send(UPGRADE_WITH_COOKIE, frame(encode(HANDSHAKE)))
        await both.settle(client)
        both.at_home.pause()
        await both.settle(client)
        both.wire.lose()
        await client.send(frame(encode(SUBSCRIBE)))
        await both.settle(client)
        [socket] = both.door.sockets.all()
        both.far.settle()
        assert socket.is_handling()
        await both.settle(client)
        assert b"server_busy" in client.transport.written


async def test_a_client_that_leaves_gets_its_reply() -> None:
    async with pair() as both:
        client = await enter(both)
        response = await say(client, DISCONNECT)
        assert response is not None
        assert DONE in response.body
        assert sessions_of(both.home) == []


@pytest.mark.parametrize("piece", [1, 7, 50])
async def test_frames_may_arrive_in_pieces(piece: int) -> None:
    async with pair(piece) as both:
        client = both.connect()
        client.send_now(post_messages(HANDSHAKE))
        await client.settle(2000 // piece)
        assert DONE in client.heard().responses[-1].body


async def test_a_door_that_may_not_speak_for_its_own_shard_passes_on_what_others_say() -> None:
    async with pair() as both:
        client = await enter(both)
        both.door.right.is_silent = True
        response = await say(client, PUBLISH)
        assert response is not None
        assert DONE in response.body
        assert await say(client, CONNECT) is None
        both.home.server.publish("/news", "late")
        await both.settle(client)
        assert b'"data":"late"' in client.heard().responses[-1].body


async def test_a_home_that_may_not_speak_says_nothing_through_a_door_that_may() -> None:
    async with pair() as both:
        client = await enter(both)
        both.home.right.is_silent = True
        assert await say(client, PUBLISH) is None
        both.home.right.speak_again()
        await both.settle(client)
        assert DONE in client.heard().responses[-1].body
