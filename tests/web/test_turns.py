"""What is said in a turn leaves when the turn ends, and nothing overtakes it."""

from unittest.mock import Mock

import pytest

from app.bayeux.dispatch import Rest
from app.web.fast_lane import FastLane
from tests.abuse.attacker import frame
from tests.web.requests import HANDSHAKE, PUBLISH, encode, post_messages
from tests.web.rig import Door, Rig, without_faults
from tests.web.test_faults import UPGRADE

pytestmark = pytest.mark.usefixtures("nothing_blocks")

MANY = [{**PUBLISH, "id": str(number)} for number in range(5)]
HELLO, SAY = post_messages(HANDSHAKE, cookie=""), post_messages(PUBLISH)
GOODBYE = frame(b"\x03\xe8", opcode=8)


async def test_answers_of_a_turn_leave_together_when_it_ends() -> None:
    async with Rig() as rig:
        one, other = rig.connect(), rig.connect()
        await one.send(HELLO)
        before = bytes(one.transport.written)
        one.send_now(SAY)
        other.send_now(SAY)
        assert bytes(one.transport.written) == before
        await one.settle()
        assert [len(each.heard().responses) for each in (one, other)] == [2, 1]


@pytest.mark.parametrize(
    "behind", [b"nonsense\r\n\r\n", b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"]
)
async def test_an_answer_precedes_those_to_what_came_behind_in_the_same_turn(behind: bytes) -> None:
    async with Rig() as rig:
        client = rig.connect()
        await client.send(HELLO)
        client.send_now(SAY)
        client.send_now(behind)
        await client.settle()
        said, after = client.heard().responses[1:]
        assert b'"successful":true' in said.body
        assert after.status == (400 if behind.startswith(b"nonsense") else 200)


async def test_a_connection_that_is_closed_for_what_it_sends_gets_its_answers_first() -> None:
    async with Rig() as rig:
        client = rig.connect()
        await client.send(HELLO)
        client.send_now(SAY)
        assert isinstance(client.protocol, FastLane)
        client.protocol.force_close()
        assert len(client.heard().responses) == 2


async def test_a_socket_that_says_something_and_goodbye_is_answered_both() -> None:
    async with Rig() as rig:
        client = rig.connect()
        await client.send(UPGRADE, frame(encode(HANDSHAKE)) + GOODBYE)
        _, _, frames = bytes(client.transport.written).partition(b"\r\n\r\n")
        assert b'"successful":true' in frames
        assert frames.endswith(b"\x88\x02\x03\xe8")


@pytest.mark.parametrize("door", Door)
async def test_a_request_of_many_messages_lets_others_have_their_turn(door: Door) -> None:
    with without_faults():
        async with Rig(door=door, is_turn_over=lambda: True) as rig:
            one, other = rig.connect(), rig.connect()
            await one.send(HELLO)
            one.send_now(post_messages(*MANY))
            other.send_now(SAY)
            while not other.heard().responses:
                await one.settle(1)
            if door is Door.FAST_LANE:
                assert len(one.heard().responses) == 1
            await one.settle()
            [answer] = one.heard().responses[1:]
            assert answer.body.count(b'"successful":true') == len(MANY)


async def test_what_comes_next_on_a_socket_waits_for_what_came_before() -> None:
    async with Rig(is_turn_over=lambda: True) as rig:
        client = rig.connect()
        await client.send(UPGRADE, frame(encode(HANDSHAKE)))
        client.send_now(frame(encode(*MANY)) + frame(encode({**PUBLISH, "id": "last"})))
        await client.settle()
        written = bytes(client.transport.written)
        assert 0 < written.rindex(b'"id":"4"') < written.index(b'"id":"last"')


@pytest.mark.parametrize("door", Door)
async def test_a_fault_in_the_middle_of_a_request_is_its_answer(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Rig(door=door, is_turn_over=lambda: True) as rig:
        client = rig.connect()
        await client.send(HELLO)
        monkeypatch.setattr(Rest, "go_on", Mock(side_effect=RuntimeError("a fault of ours")))
        await client.send(post_messages(*MANY))
        assert [each.status for each in client.heard().responses] == [200, 503]
