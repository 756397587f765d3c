"""Messages on sockets that arrive alone are handled at once, in order with all others."""

import asyncio
import re

import pytest

from holdfast.web.endpoint import WebOptions
from tests.abuse.attacker import PING, frame
from tests.web.requests import HANDSHAKE, PUBLISH, encode
from tests.web.rig import Client, FrontEnd, Rig
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
    options = WebOptions(ws_idle_timeout_s=0.2)
    async with Rig(front_end=front_end, web_options=options) as rig:
        client = await welcomed(rig)
        rig.pass_time(1.0)
        await asyncio.sleep(0.1)
        assert b"idle for too long" in client.transport.written
        await client.send(say(1))
        assert answered(client) == []
