"""The fast lane alone: turns, deadlines of requests, and clients that are cut off."""

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from holdfast.settings import Settings
from holdfast.web.front import listener
from holdfast.web.front.client_frames import ClientFrames
from holdfast.web.front.fast_lane import FastLane
from tests.abuse.attacker import frame
from tests.web.requests import (
    CONNECT,
    HANDSHAKE,
    PUBLISH,
    SUBSCRIBE,
    chunked,
    encode,
    ids_of_session,
    post,
    post_messages,
)
from tests.web.rig import LONG_S, Client, FrontEnd, Rig, without_faults
from tests.web.test_faults import UPGRADE

pytestmark = pytest.mark.usefixtures("nothing_blocks")

HELLO = post_messages(HANDSHAKE, cookie="")
HOLD = post_messages(CONNECT)
SAY = post_messages(PUBLISH)
# Deadlines that pass while a test waits.
SOON_S = 0.15
SOON = 150
LONG_WAIT_S = 20.0


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    options = Settings(request_timeout=SOON, write_timeout=SOON)
    async with Rig(options=options) as rig:
        yield rig


async def holding(rig: Rig) -> Client:
    """A client whose connect is held."""
    client = rig.connect()
    await client.send(HELLO, HOLD, HOLD)
    assert statuses(client) == [200, 200]
    return client


def statuses(client: Client) -> list[int]:
    return [response.status for response in client.heard().responses]


def lane(client: Client) -> FastLane:
    assert isinstance(client.protocol, FastLane)
    return client.protocol


async def until_closed(client: Client) -> None:
    async with asyncio.timeout(20):
        await client.transport.closing.wait()
    await client.settle()


async def test_bytes_keep_their_order_when_a_held_connect_is_answered_between_them(
    rig: Rig,
) -> None:
    client = await holding(rig)
    await client.send(SAY[:60])
    rig.pass_time(LONG_S)
    client.send_now(SAY[60:])
    await client.settle()
    assert statuses(client) == [200, 200, 200, 200]


async def test_a_body_behind_a_refused_upgrade_is_read_to_its_end(rig: Rig) -> None:
    client = rig.connect()
    upgrade = (
        b"GET /cometd HTTP/1.1\r\nHost: h\r\nOrigin: http://evil.test\r\nConnection: Upgrade\r\n"
        b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    await client.send(HELLO, upgrade + SAY[:-20], SAY[-20:], SAY)
    assert statuses(client) == [200, 403, 200, 200]


@pytest.mark.parametrize("count", range(29, 36))
async def test_many_requests_behind_the_rest_of_another_are_all_answered(
    rig: Rig, count: int
) -> None:
    client = rig.connect()
    await client.send(HELLO, SAY[:-20], SAY[-20:] + SAY * count)
    await client.settle(100)
    assert statuses(client) == [200] * (2 + count)


async def test_requests_behind_a_final_answer_are_not_answered(rig: Rig) -> None:
    client = rig.connect()
    refused = post(b" " * 5000, ["Content-Encoding: snappy"])
    await client.send(HELLO, refused[:-1000], refused[-1000:] + SAY)
    assert statuses(client) == [200, 415]
    assert client.is_over()


async def test_a_head_that_is_never_complete_is_answered_with_408(rig: Rig) -> None:
    client = rig.connect()
    await client.send(HELLO, SAY[:20])
    await until_closed(client)
    assert statuses(client) == [200, 408]


async def test_a_deadline_that_passed_behind_a_held_connect_does_not_end_all_deadlines(
    rig: Rig,
) -> None:
    client = rig.connect()
    await client.send(HELLO, HOLD, HOLD + SAY[:-5])
    await asyncio.sleep(2 * SOON_S)
    await client.send(SAY[-5:])
    rig.pass_time(LONG_S)
    await client.settle()
    assert statuses(client) == [200, 200, 200, 200]
    await client.send(SAY[:20])
    await until_closed(client)


async def test_the_late_rest_of_an_answered_request_gets_no_second_answer(
    rig: Rig,
) -> None:
    client = rig.connect()
    probe = b"GET /healthz HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n"
    await client.send(probe, b"abc")
    await until_closed(client)
    assert statuses(client) == [200]


async def test_a_client_that_does_not_read_is_cut_off(rig: Rig) -> None:
    client = await holding(rig)
    lane(client).pause_writing()
    await until_closed(client)
    assert client.transport.is_aborted


async def test_a_client_that_reads_again_is_not_cut_off(rig: Rig) -> None:
    client = await holding(rig)
    lane(client).pause_writing()
    lane(client).resume_writing()
    await asyncio.sleep(2 * SOON_S)
    assert not client.is_over()


async def test_closing_a_connection_whose_client_does_not_read_still_cuts_it_off(
    rig: Rig,
) -> None:
    client = await holding(rig)
    client.transport.is_stuck = True
    lane(client).pause_writing()
    client.send_now(b"x" * 70_000)
    assert client.is_over()
    await asyncio.sleep(2 * SOON_S)
    assert client.transport.is_aborted


async def test_too_much_behind_a_held_connect_ends_the_connection_and_its_hold(rig: Rig) -> None:
    client = await holding(rig)
    await client.send(SAY * 200)
    assert not client.is_over()
    await client.send(SAY * 200)
    assert client.is_over()
    assert [session.held_connect for session in rig.bayeux.state.sessions] == [None]


async def test_many_closed_connections_of_one_session_leave_few_log_lines(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    client = await holding(rig)
    key = next(iter(rig.bayeux.state.sessions)).key
    await client.send(SAY * 400)
    for _ in range(30):
        client = rig.connect()
        await client.send(HOLD, SAY * 400)
        assert client.is_over()
    rig.bayeux.state.notices.end_window()
    line = (
        f"a connection of session {key} was closed: too many bytes arrived while a request was held"
    )
    assert caplog.messages == [line, f"{line}, 30 more"]


async def test_bytes_of_a_socket_are_handled_in_small_pieces_over_several_turns(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[bytes] = []

    def feed_data(self: ClientFrames, data: bytes) -> tuple[bool, bytes]:
        heard.append(data)
        return False, b""

    monkeypatch.setattr(ClientFrames, "feed_data", feed_data)
    fragments = b"".join(frame(b"%d" % number, is_final=False) for number in range(20_000))
    client = rig.connect()
    await client.send(UPGRADE + fragments[:50_000])
    client.send_now(fragments[50_000:])
    before = len(heard)
    await client.settle(1)
    assert len(heard) == before + 1
    assert client.transport.is_reading_paused
    await client.settle()
    assert b"".join(heard) == fragments
    assert max(map(len, heard)) <= 16 * 1024
    assert not client.transport.is_reading_paused


async def test_each_of_many_frames_at_once_is_answered(rig: Rig) -> None:
    client = rig.connect()
    await client.send(UPGRADE, frame(encode(HANDSHAKE)))
    says = [frame(encode({**PUBLISH, "id": f"n{n}", "data": "x" * 300})) for n in range(500)]
    await client.send(b"".join(says))
    await client.settle(2000)
    written = bytes(client.transport.written)
    places = [written.find(b'"id":"n%d"' % number) for number in range(500)]
    assert -1 not in places
    assert places == sorted(places)


async def test_many_requests_behind_a_held_connect_are_answered_in_order(rig: Rig) -> None:
    client = await holding(rig)
    numbered = [post(encode({**PUBLISH, "id": f"n{n}"})) for n in range(100)]
    await client.send(*numbered[:50], b"".join(numbered[50:]))
    rig.pass_time(LONG_S)
    await client.settle(400)
    answers = client.heard().responses[3:]
    assert [f'"id":"n{n}"'.encode() in each.body for n, each in enumerate(answers)] == [True] * 100


async def test_a_held_connect_ends_when_its_client_is_gone_and_its_queue_stays(
    rig: Rig,
) -> None:
    client = rig.connect()
    await client.send(HELLO, post_messages(SUBSCRIBE), HOLD, HOLD)
    (session,) = rig.bayeux.state.sessions
    assert session.held_connect is not None
    client.transport.lose()
    assert session.held_connect is None
    client_id, cookie = ids_of_session(2)
    publisher = {**PUBLISH, "clientId": client_id}
    other = rig.connect()
    await other.send(HELLO, post_messages(publisher, cookie=cookie))
    assert session.queue.count == 1
    again = rig.connect()
    await again.send(HOLD)
    assert b'"data":"hello"' in again.heard().responses[-1].body


@pytest.fixture
def short_keepalive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "_KEEPALIVE_S", SOON_S)


@pytest.mark.usefixtures("short_keepalive")
@pytest.mark.parametrize("front_end", FrontEnd)
async def test_an_idle_connection_is_closed_after_a_while(front_end: FrontEnd) -> None:
    async with Rig(front_end=front_end) as rig:
        silent, spoken = rig.connect(), rig.connect()
        await spoken.send(HELLO)
        await until_closed(silent)
        await until_closed(spoken)
        assert (statuses(silent), statuses(spoken)) == ([], [200])


@pytest.mark.parametrize("front_end", [FrontEnd.FAST_LANE, FrontEnd.ORDINARY])
async def test_a_connection_that_sends_nothing_is_closed_after_the_time_of_a_request(
    front_end: FrontEnd,
) -> None:
    options = Settings(request_timeout=SOON)
    async with Rig(front_end=front_end, options=options) as rig:
        silent, spoken = rig.connect(), rig.connect()
        await spoken.send(HELLO)
        await until_closed(silent)
        assert not silent.transport.written
        assert not spoken.is_over(), "it has made a request"


@pytest.mark.parametrize("sent", [b"", SAY[:30]], ids=["silent", "half a head"])
async def test_connections_that_time_out_together_are_closed_over_several_turns(
    rig: Rig, sent: bytes
) -> None:
    clients = [rig.connect() for _ in range(100)]
    for client in clients:
        if sent:
            client.protocol.data_received(sent)
    told = {0}
    async with asyncio.timeout(LONG_WAIT_S):
        while not all(client.transport.is_closing() for client in clients):
            await asyncio.sleep(0)
            told.add(sum(client.transport.is_closing() for client in clients))
    assert len(told) > 5


async def test_connections_that_clients_close_together_are_closed_over_several_turns() -> None:
    # None of their deadlines passes meanwhile.
    async with Rig() as rig:
        clients = [rig.connect() for _ in range(100)]
        clients[-1].send_now(HOLD)
        # Of these, aiohttp waits for the rest of a body.
        beginning = chunked(encode(PUBLISH), 20, ["Content-Type: application/json"])[:-20]
        for client in clients[:-1]:
            await client.send(beginning)
        for client in clients:
            if not client.protocol.eof_received():
                client.transport.close()
        assert sum(client.transport.is_closing() for client in clients) < 20
        last = clients[-1].protocol
        assert isinstance(last, FastLane)
        # Nothing is sent to one that waits to be closed.
        assert last.is_lost()
        with without_faults():
            await clients[-1].settle(100)
        assert all(client.transport.is_lost for client in clients)
        assert rig.endpoint.turn.connections == 0


@pytest.mark.parametrize("front_end", FrontEnd)
async def test_a_connection_with_a_held_connect_is_not_idle(front_end: FrontEnd) -> None:
    async with Rig(front_end=front_end) as rig:
        client = rig.connect()
        await client.send(HELLO, HOLD, HOLD)
        await asyncio.sleep(3 * SOON_S)
        assert not client.is_over()
        rig.pass_time(LONG_S)
        await client.settle()
        assert statuses(client) == [200, 200, 200]
        await client.send(SAY)
        assert not client.is_over()


@pytest.mark.usefixtures("short_keepalive")
async def test_a_request_under_way_has_its_own_deadline_not_that_of_idle_connections() -> None:
    async with Rig(options=Settings(request_timeout=60_000)) as rig:
        client = rig.connect()
        await client.send(HELLO, SAY[:30])
        await asyncio.sleep(3 * SOON_S)
        await client.send(SAY[30:])
        assert statuses(client) == [200, 200]


async def test_two_kinds_of_requests_that_take_turns_are_both_recognised(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = rig.connect()
    elsewhere = SAY.replace(b"POST /cometd", b"POST /cometd/publish", 1)
    assert elsewhere != SAY
    await client.send(HELLO, SAY, elsewhere)
    parsed: list[bytes] = []
    monkeypatch.setattr(FastLane, "_parse", lambda _, data: parsed.append(data))
    await client.send(SAY, elsewhere, SAY, elsewhere)
    assert parsed == []
    assert statuses(client) == [200] * 7


async def test_each_of_two_known_heads_belongs_to_its_own_browser(rig: Rig) -> None:
    client = rig.connect()
    stranger = SAY.replace(b"BAYEUX_BROWSER=", b"BAYEUX_BROWSER=f", 1)
    assert stranger != SAY
    await client.send(HELLO, SAY, stranger, SAY, stranger, SAY)
    said = [b'"successful":true' in each.body for each in client.heard().responses[1:]]
    assert said == [True, False, True, False, True]
