"""Messages on sockets that arrive alone are handled at once, in order with all others."""

import asyncio
import gc
import re

import pytest

from holdfast.bayeux.exchanges import RemainingMessages
from holdfast.settings import Settings
from holdfast.web.front.client_frames import ClientFrames
from holdfast.web.scheduling.intake import SMALL
from holdfast.web.websockets.socket_response import SocketResponse
from tests.abuse.attacker import PING, frame
from tests.slowness import times_slower
from tests.store.store_process import until
from tests.web.requests import HANDSHAKE, PUBLISH, encode
from tests.web.rig import LONG_S, Client, FrontEnd, Rig
from tests.web.test_faults import UPGRADE

pytestmark = pytest.mark.usefixtures("nothing_blocks")

PONG = b"\x8a\x02hi"


def say(number: int) -> bytes:
    return frame(encode({**PUBLISH, "id": f"n{number}"}))


async def welcomed(rig: Rig) -> Client:
    client = rig.connect()
    await client.send(UPGRADE, frame(encode(HANDSHAKE)))
    client.transport.written.clear()
    return client


def mine_of(rig: Rig) -> dict[str, object]:
    """A publish of the only session."""
    [session] = rig.bayeux.state.sessions
    return {**PUBLISH, "clientId": session.client_id}


def answered(client: Client) -> list[int]:
    """The numbers of the messages that were answered, in order."""
    return [int(number) for number in re.findall(rb'"id":"n(\d+)"', client.transport.written)]


async def test_a_message_that_arrives_alone_is_answered_at_the_end_of_its_turn() -> None:
    async with Rig() as rig:
        client = await welcomed(rig)
        client.send_now(say(1))
        assert answered(client) == []
        await asyncio.sleep(0)
        assert answered(client) == [1]


@pytest.mark.parametrize("front_end", FrontEnd)
async def test_messages_are_answered_in_order_however_they_arrive(front_end: FrontEnd) -> None:
    async with Rig(front_end=front_end) as rig:
        client = await welcomed(rig)
        half = len(say(4)) // 2
        client.send_now(say(0))
        client.send_now(say(1) + say(2))
        client.send_now(say(3))
        client.send_now(say(4)[:half])
        client.send_now(say(4)[half:])
        client.send_now(say(5))
        await client.settle()
        await client.send(say(6))
        assert answered(client) == [*range(7)]


@pytest.mark.parametrize("ahead", [b"", frame(b"hi", PING)])
async def test_a_message_waits_for_an_unfinished_one(ahead: bytes) -> None:
    async with Rig(is_turn_over=lambda: True) as rig:
        client = await welcomed(rig)
        many = [{**PUBLISH, "id": f"n{number}"} for number in range(5)]
        client.send_now(ahead + frame(encode(*many)))
        await client.settle(2)
        assert answered(client) == []
        client.send_now(say(5))
        await client.settle(1)
        client.send_now(say(6))
        await client.settle()
        await client.send(say(7))
        assert answered(client) == [*range(8)]


@pytest.mark.parametrize("front_end", FrontEnd)
async def test_nothing_is_handled_until_the_client_reads(front_end: FrontEnd) -> None:
    async with Rig(front_end=front_end) as rig:
        client = await welcomed(rig)
        client.transport.stop_reading()
        await client.send(say(1), say(2), frame(b"hi", PING), say(3))
        assert answered(client) == [1]
        assert PONG not in client.transport.written
        client.transport.read_on()
        await client.settle()
        assert answered(client) == [1, 2, 3]
        assert PONG in client.transport.written


@pytest.mark.parametrize("front_end", FrontEnd)
async def test_nothing_is_handled_after_the_server_has_closed_the_socket(
    front_end: FrontEnd,
) -> None:
    options = Settings(ws_idle_timeout=200)
    async with Rig(front_end=front_end, options=options) as rig:
        client = await welcomed(rig)
        rig.pass_time(1.0)
        await until(lambda: b"idle for too long" in client.transport.written)
        await client.send(say(1))
        assert answered(client) == []


@pytest.mark.parametrize("part", [1, 50])
async def test_a_session_does_not_expire_while_its_messages_wait(part: int) -> None:
    """All of them come in one segment, in frames of so many."""
    async with Rig(is_turn_over=lambda: True) as rig:
        client = await welcomed(rig)
        messages = [{**mine_of(rig), "id": f"n{number}"} for number in range(100)]
        batches = [messages[begin : begin + part] for begin in range(0, 100, part)]
        client.send_now(b"".join(frame(encode(*batch)) for batch in batches))
        for _ in range(3):
            await client.settle(1)
            rig.pass_time(LONG_S)
        assert len(answered(client)) < 100
        for _ in range(10):
            await client.settle(100)
        assert answered(client) == [*range(100)]
        assert b"402::" not in client.transport.written
        rig.pass_time(LONG_S)
        assert len(rig.bayeux.state.sessions) == 0


@pytest.mark.parametrize("front_end", FrontEnd)
@pytest.mark.parametrize("chatter", [frame(b"hi", PING), say(1)], ids=["pings", "messages"])
async def test_a_socket_without_a_living_session_is_closed_whatever_it_sends(
    chatter: bytes, front_end: FrontEnd
) -> None:
    options = Settings(ws_idle_timeout=200)
    async with Rig(front_end=front_end, options=options) as rig:
        client = await welcomed(rig)
        rig.pass_time(LONG_S)
        assert len(rig.bayeux.state.sessions) == 0
        async with asyncio.timeout(60):
            while b"idle for too long" not in client.transport.written:
                await client.send(chatter)
                await asyncio.sleep(0.01)


async def test_a_socket_is_not_idle_while_a_message_of_its_session_is_being_handled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with Rig(is_turn_over=lambda: True) as rig:
        client = await welcomed(rig)
        [socket] = rig.sockets.all()
        with monkeypatch.context() as others:
            others.setattr(RemainingMessages, "go_on", lambda *_: False)
            client.send_now(frame(encode(mine_of(rig), mine_of(rig))))
            await client.settle(2)
            rig.pass_time(LONG_S)
            assert not socket.is_idle(since=rig.endpoint.clock() - 1.0)
        await client.settle()
        assert not socket.is_idle(since=rig.endpoint.clock() - 1.0)
        rig.pass_time(LONG_S)
        assert socket.is_idle(since=rig.endpoint.clock() - 1.0)


async def test_a_handshake_that_waits_is_waited_for() -> None:
    options = Settings(ws_session_timeout=50)
    async with Rig(is_turn_over=lambda: True, options=options) as rig:
        client = rig.connect()
        await client.send(UPGRADE)
        large = {**HANDSHAKE, "id": "n1", "ext": {"x": "x" * SMALL}}
        rig.endpoint.scheduler._is_due = True
        client.send_now(frame(encode(large)))
        await asyncio.sleep(0.2)
        rig.endpoint.scheduler._go_on()
        await client.settle()
        assert answered(client) == [1]
        assert b"408::" not in client.transport.written


UNFINISHED = {
    "a head": frame(b"x" * 200)[:2],
    "a payload": say(1)[:-1],
    "a message": frame(b"[", is_final=False) + frame(b" ", 0, is_final=False),
    "a ping": frame(b"hi", PING)[:-1],
    "a piece behind a message": say(1) + say(2)[:9],
}


@pytest.mark.parametrize("front_end", [FrontEnd.FAST_LANE, FrontEnd.ORDINARY])
@pytest.mark.parametrize("first", [b"", frame(encode(HANDSHAKE))], ids=["before", "after"])
@pytest.mark.parametrize("begun", UNFINISHED)
async def test_a_frame_that_is_not_finished_in_time_closes_the_socket(
    begun: str, first: bytes, front_end: FrontEnd
) -> None:
    options = Settings(request_timeout=50)
    async with Rig(front_end=front_end, options=options) as rig:
        client = rig.connect()
        await client.send(UPGRADE)
        await client.send(first + UNFINISHED[begun])
        async with asyncio.timeout(60):
            while b"\x03\xf0408::request_timeout" not in client.transport.written:
                await client.settle(1)
                await asyncio.sleep(0.01)


async def test_frames_that_are_finished_in_time_are_heard_however_long_they_keep_coming() -> None:
    limit_s = 0.4 * times_slower(most=8.0)
    options = Settings(request_timeout=round(1000 * limit_s))
    async with Rig(options=options) as rig:
        client = await welcomed(rig)
        ends = asyncio.get_running_loop().time() + 2 * limit_s
        number, begun = 0, b""
        while asyncio.get_running_loop().time() < ends:
            whole = say(number)
            # Each piece ends a message and begins the next one.
            await client.send(begun + whole[:9])
            begun, number = whole[9:], number + 1
            await asyncio.sleep(0.02)
        await client.send(begun)
        assert answered(client) == [*range(number)]


def parts_of_connections() -> list[object]:
    """All objects that only an open WebSocket needs."""
    return [each for each in gc.get_objects() if type(each) in (ClientFrames, SocketResponse)]


@pytest.mark.parametrize("size", [0, 100_000, Settings().max_request_size])
async def test_the_session_of_a_lost_socket_keeps_nothing_of_its_connection(size: int) -> None:
    async with Rig() as rig:
        # What other tests have left behind is not freed meanwhile.
        before = parts_of_connections()
        client = await welcomed(rig)
        await client.send(frame(b"x" * size, is_final=False))
        assert len(parts_of_connections()) == len(before) + 2
        client.transport.lose()
        await client.settle()
        assert len(parts_of_connections()) == len(before)
        [session] = rig.bayeux.state.sessions
        assert session.carrier is not None
        assert session.carrier.is_lost()
