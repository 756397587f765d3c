"""Answers leave at the end of their turn and in order, and large requests yield to others."""

import asyncio
import json
from dataclasses import replace
from itertools import chain, count, pairwise, repeat
from math import inf
from typing import Any
from unittest.mock import Mock

import pytest

from holdfast.bayeux.exchanges import RemainingMessages, receive
from holdfast.bayeux.server import Bayeux
from holdfast.bayeux.session import Exchange
from holdfast.bayeux.wire.unfit import Salvage
from holdfast.settings import Settings
from holdfast.web.front.fast_lane import FastLane
from holdfast.web.http.cookies import BrowserCookie
from holdfast.web.http.request_kinds import RequestKind, kind_of
from holdfast.web.scheduling import request_scheduler
from holdfast.web.scheduling.intake import SMALL
from tests.abuse.attacker import frame
from tests.web.requests import (
    CONNECT,
    COOKIE,
    DISCONNECT,
    HANDSHAKE,
    PUBLISH,
    encode,
    post,
    post_messages,
)
from tests.web.rig import LONG_S, TURNS, Client, FrontEnd, Rig, without_faults
from tests.web.test_faults import UPGRADE

pytestmark = pytest.mark.usefixtures("nothing_blocks")

MANY = [{**PUBLISH, "id": str(number)} for number in range(5)]
HELLO, SAY = post_messages(HANDSHAKE, cookie=""), post_messages(PUBLISH)
GOODBYE = frame(b"\x03\xe8", opcode=8)
PROBE = b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"
QUESTION = PROBE.replace(b"healthz", b"nothing")


async def known(rig: Rig, *requests: bytes) -> list[Client]:
    """Return a connection for each request, which knows its head and has heard nothing."""
    clients = [rig.connect() for _ in requests]
    for client, request in zip(clients, requests, strict=True):
        await client.send(request)
        client.transport.written.clear()
    return clients


async def test_the_answers_of_a_turn_are_sent_together_at_its_end() -> None:
    async with Rig() as rig:
        one, other = rig.connect(), rig.connect()
        await one.send(HELLO)
        before = bytes(one.transport.written)
        one.send_now(SAY)
        other.send_now(SAY)
        assert bytes(one.transport.written) == before
        await one.settle()
        assert [len(each.heard().responses) for each in (one, other)] == [2, 1]


@pytest.mark.parametrize("behind", [b"nonsense\r\n\r\n", PROBE])
async def test_answers_keep_the_order_of_requests_within_a_turn(behind: bytes) -> None:
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


async def test_a_message_and_a_close_frame_in_one_turn_are_both_answered() -> None:
    async with Rig() as rig:
        client = rig.connect()
        await client.send(UPGRADE, frame(encode(HANDSHAKE)) + GOODBYE)
        _, _, frames = bytes(client.transport.written).partition(b"\r\n\r\n")
        assert b'"successful":true' in frames
        assert frames.endswith(b"\x88\x02\x03\xe8")


@pytest.mark.parametrize("front_end", FrontEnd)
async def test_a_request_of_many_messages_yields_to_others(front_end: FrontEnd) -> None:
    with without_faults():
        async with Rig(front_end=front_end, is_turn_over=lambda: True) as rig:
            one, other = rig.connect(), rig.connect()
            await one.send(HELLO)
            one.send_now(post_messages(*MANY))
            other.send_now(HELLO)
            while not other.heard().responses:
                await one.settle(1)
            if front_end is FrontEnd.FAST_LANE:
                assert len(one.heard().responses) == 1
            await one.settle()
            [answer] = one.heard().responses[1:]
            assert answer.body.count(b'"successful":true') == len(MANY)


async def test_the_next_message_on_a_socket_waits_for_the_one_before() -> None:
    async with Rig(is_turn_over=lambda: True) as rig:
        client = rig.connect()
        await client.send(UPGRADE, frame(encode(HANDSHAKE)))
        client.send_now(frame(encode(*MANY)) + frame(encode({**PUBLISH, "id": "last"})))
        await client.settle()
        written = bytes(client.transport.written)
        assert 0 < written.rindex(b'"id":"4"') < written.index(b'"id":"last"')


@pytest.mark.parametrize("front_end", FrontEnd)
async def test_a_fault_in_the_middle_of_a_request_fails_the_request(
    front_end: FrontEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Rig(front_end=front_end, is_turn_over=lambda: True) as rig:
        client = rig.connect()
        await client.send(HELLO)
        monkeypatch.setattr(
            RemainingMessages, "go_on", Mock(side_effect=RuntimeError("a fault of ours"))
        )
        await client.send(post_messages(*MANY))
        assert [each.status for each in client.heard().responses] == [200, 503]


class Handled:
    """Counts the requests that were handled."""

    def __init__(self, rig: Rig) -> None:
        self.count = 0
        self.bodies: list[bytes] = []
        rig.endpoint.scheduler.handle = self._handle

    def _handle(self, bayeux: Bayeux, body: bytes, exchange: Exchange, now: float) -> Any:
        self.count += 1
        self.bodies.append(body)
        return receive(bayeux, body, exchange, now)

    async def most_in_a_turn(self, client: Client, count: int) -> int:
        """Return how many were handled in one turn at most, until so many are."""
        counts = [self.count]
        for _ in range(TURNS * count):
            await client.settle(1)
            counts.append(self.count)
        assert counts[-1] == count
        return max(after - before for before, after in pairwise([0, *counts]))


@pytest.mark.parametrize("front_end", FrontEnd)
async def test_a_turn_that_is_over_handles_one_small_request(front_end: FrontEnd) -> None:
    with without_faults():
        async with Rig(front_end=front_end, is_turn_over=lambda: True) as rig:
            handled = Handled(rig)
            clients = [rig.connect() for _ in range(20)]
            for client in clients:
                client.send_now(SAY)
            assert await handled.most_in_a_turn(client, 20) == 1
            assert all(len(each.heard().responses) == 1 for each in clients)


async def test_heads_that_are_new_on_their_connections_are_parsed_over_several_turns() -> None:
    with without_faults():
        async with Rig(is_turn_over=lambda: True) as rig:
            clients = await known(rig, *[HELLO] * 20)
            handled = Handled(rig)
            for client in clients:
                client.send_now(SAY)
            assert rig.unread.since() < inf
            assert await handled.most_in_a_turn(client, 20) == 1
            await client.settle()
            assert all(len(each.heard().responses) == 1 for each in clients)
            assert rig.unread.since() == inf


async def test_a_request_with_a_known_head_overtakes_those_that_have_to_be_parsed() -> None:
    async with Rig(is_turn_over=lambda: True) as rig:
        [other] = await known(rig, SAY)
        clients = await known(rig, *[HELLO] * 20)
        for client in clients:
            client.send_now(post_messages(CONNECT, cookie="BAYEUX_BROWSER=a"))
        other.send_now(SAY)
        await other.settle(8)
        assert len(other.heard().responses) == 1
        assert not clients[-1].heard().responses


@pytest.mark.parametrize("is_parsed", [False, True], ids=["before", "after its head"])
async def test_a_known_head_whose_body_comes_later_goes_ahead_of_new_heads(
    *, is_parsed: bool
) -> None:
    is_over = False
    async with Rig(is_turn_over=lambda: is_over) as rig:
        [other] = await known(rig, SAY)
        clients = await known(rig, *[HELLO] * 50)
        head, body = SAY[: -len(encode(PUBLISH))], encode(PUBLISH)
        if is_parsed:
            await other.send(head)
        is_over = True
        for client in clients:
            client.send_now(post_messages(CONNECT, cookie="BAYEUX_BROWSER=a"))
        if not is_parsed:
            other.send_now(head)
        other.send_now(body)
        await other.settle(16)
        assert len(other.heard().responses) == 1
        assert not clients[-1].heard().responses


async def test_a_head_is_known_although_its_body_always_comes_later() -> None:
    is_over = False
    head, body = SAY[: -len(encode(PUBLISH))], encode(PUBLISH)
    async with Rig(is_turn_over=lambda: is_over) as rig:
        clients, other = await known(rig, *[HELLO] * 50), rig.connect()
        await other.send(head, body)
        is_over = True
        for client in clients:
            client.send_now(post_messages(CONNECT, cookie="BAYEUX_BROWSER=a"))
        other.send_now(SAY)
        await other.settle(16)
        assert len(other.heard().responses) == 2
        assert not clients[-1].heard().responses


async def test_a_new_head_does_not_wait_for_others_while_there_is_time() -> None:
    is_over = True
    async with Rig(is_turn_over=lambda: is_over) as rig:
        handled = Handled(rig)
        first, second = rig.connect(), rig.connect()
        first.send_now(post_messages(PUBLISH, cookie="BAYEUX_BROWSER=a"))
        is_over = False
        second.send_now(HELLO)
        assert handled.bodies == [encode(HANDSHAKE)]
        await second.settle()
        assert len(first.heard().responses) == 1


async def test_those_that_have_to_be_parsed_have_their_turns_however_many_overtake() -> None:
    async with Rig(is_turn_over=lambda: True) as rig:
        overtaking = await known(rig, *[SAY] * 20)
        clients = await known(rig, *[HELLO] * 20)
        for client in clients:
            client.send_now(post_messages(CONNECT, cookie="BAYEUX_BROWSER=a"))
        for _ in range(TURNS * 20):
            for other in overtaking:
                other.send_now(SAY)
            await other.settle(1)
        assert all(client.heard().responses for client in clients)


async def test_what_a_client_sends_keeps_its_order_although_one_head_is_new() -> None:
    is_over = False
    async with Rig(is_turn_over=lambda: is_over) as rig:
        first = rig.connect()
        [second] = await known(rig, SAY)
        handled = Handled(rig)
        is_over = True
        first.send_now(post_messages({**PUBLISH, "data": "first"}))
        is_over = False
        second.send_now(post_messages({**PUBLISH, "data": "second"}))
        await second.settle()
        assert [b"first" in each for each in handled.bodies] == [True, False]
        assert len(second.heard().responses) == 1


async def test_pipelined_requests_of_many_connections_are_parsed_over_several_turns() -> None:
    with without_faults():
        is_over = False
        async with Rig(is_turn_over=lambda: is_over) as rig:
            clients = [rig.connect() for _ in range(10)]
            for client in clients:
                # It does not read its first response yet.
                client.transport.stop_reading()
                client.send_now(HELLO)
            await client.settle()
            handled = Handled(rig)
            for client in clients:
                client.send_now(SAY)
            is_over = True
            for client in clients:
                client.transport.read_on()
            assert await handled.most_in_a_turn(client, 10) == 1


async def test_questions_are_answered_in_a_silence_however_much_waits_for_its_end() -> None:
    async with Rig(is_turn_over=lambda: True) as rig:
        clients, other = [rig.connect() for _ in range(20)], rig.connect()
        rig.right.is_silent = True
        for client in clients:
            client.send_now(SAY)
        other.send_now(PROBE)
        await other.settle(TURNS * 20)
        assert len(other.heard().responses) == 1
        assert not any(client.heard().responses for client in clients)
        rig.right.speak_again()
        await other.settle(TURNS * 20)
        assert all(len(client.heard().responses) == 1 for client in clients)


async def test_others_are_answered_before_everything_is_read_that_thousands_send() -> None:
    with without_faults():
        async with Rig(is_turn_over=lambda: True) as rig:
            one, *many = await known(rig, SAY, *[HELLO] * 19)
            one.send_now(SAY)
            for client in many[:10]:
                client.send_now(HELLO)
            assert not one.heard().responses
            rig.turn.is_long_over = True
            many[10].send_now(HELLO)
            assert one.heard().responses
            rig.turn.is_long_over = False
            for client in many[11:]:
                client.send_now(HELLO)
            await one.settle(TURNS * 20)
            assert all(len(each.heard().responses) == 1 for each in [one, *many])


async def test_a_connect_does_not_overtake_those_that_wait() -> None:
    is_over = True
    async with Rig(is_turn_over=lambda: is_over) as rig:
        connects = [
            post_messages({**CONNECT, "id": name}, cookie=f"BAYEUX_BROWSER={name}")
            for name in ("first", "second")
        ]
        first, second = await known(rig, *connects)
        handled, other = Handled(rig), rig.connect()
        first.send_now(connects[0])
        is_over = False
        second.send_now(connects[1])
        assert handled.bodies == []
        other.send_now(HELLO)
        await other.settle()
        ids = [json.loads(each)[0].get("id") for each in handled.bodies]
        assert ids[1:] == ["first", "second"]


async def test_small_requests_of_a_browser_over_several_connections_keep_their_order() -> None:
    is_over = False
    async with Rig(is_turn_over=lambda: is_over) as rig:
        handled = Handled(rig)
        first, second, another = [rig.connect() for _ in range(3)]
        is_over = True
        first.send_now(post_messages({**PUBLISH, "data": "first"}))
        # There is time again before the first has had its turn.
        is_over = False
        second.send_now(post_messages({**PUBLISH, "data": "second"}))
        another.send_now(HELLO)
        # Those of others go on.
        assert handled.bodies == [encode(HANDSHAKE)]
        await another.settle()
        assert handled.bodies[1:] == [
            encode({**PUBLISH, "data": each}) for each in ("first", "second")
        ]


async def test_a_message_that_comes_with_a_connect_keeps_its_order() -> None:
    async with Rig(is_turn_over=lambda: True) as rig:
        handled = Handled(rig)
        first, second = rig.connect(), rig.connect()
        first.send_now(post_messages({**PUBLISH, "data": "first"}, CONNECT))
        second.send_now(post_messages({**PUBLISH, "data": "second"}))
        await second.settle()
        assert [b"first" in each for each in handled.bodies] == [True, False]


async def test_a_connect_that_comes_when_small_requests_wait_is_read_later() -> None:
    async with Rig() as rig:
        handled = Handled(rig)
        returning, other = rig.connect(), rig.connect()
        await returning.send(HELLO)
        rig.turn.is_behind = True
        returning.send_now(post_messages(CONNECT))
        other.send_now(SAY)
        assert handled.bodies[1:] == [encode(PUBLISH)]
        assert isinstance(returning.protocol, FastLane)
        assert returning.protocol.has_unread()
        assert rig.unread.since() < inf
        await returning.settle()
        assert len(returning.heard().responses) == 2
        assert not returning.protocol.has_unread()
        assert rig.unread.since() == inf


@pytest.mark.parametrize("message", [HANDSHAKE, DISCONNECT])
async def test_a_handshake_or_disconnect_that_comes_when_small_requests_wait_is_read_later(
    message: dict[str, object],
) -> None:
    async with Rig() as rig:
        handled = Handled(rig)
        client, other = rig.connect(), rig.connect()
        rig.turn.is_behind = True
        client.send_now(post_messages(message))
        other.send_now(SAY)
        assert handled.bodies == [encode(PUBLISH)]
        await client.settle()
        assert handled.bodies[1:] == [encode(message)]
        assert len(client.heard().responses) == 1


async def test_frames_of_many_sockets_are_parsed_over_several_turns() -> None:
    with without_faults():
        is_over = False
        async with Rig(is_turn_over=lambda: is_over) as rig:
            clients = [rig.connect() for _ in range(10)]
            for client in clients:
                await client.send(UPGRADE)
                client.transport.written.clear()
            is_over = True
            for client in clients:
                client.send_now(frame(b"", opcode=9) * 500)

            def answered() -> int:
                return sum(bool(each.transport.written) for each in clients)

            told = [answered()]
            while told[-1] < len(clients) and len(told) < 100:
                await clients[0].settle(1)
                told.append(answered())
            assert told[0] == 0
            assert max(after - before for before, after in pairwise(told)) == 1
            assert told[-1] == len(clients)


async def test_a_connect_is_read_after_those_that_wait_to_be_read() -> None:
    async with Rig() as rig:
        handled = Handled(rig)
        first, second = rig.connect(), rig.connect()
        rig.turn.is_behind = True
        first.send_now(post_messages({**CONNECT, "id": "first"}))
        # There is time again before the first is read.
        rig.turn.is_behind = False
        second.send_now(post_messages({**CONNECT, "id": "second"}))
        assert handled.bodies == []
        await second.settle()
        assert [json.loads(each)[0]["id"] for each in handled.bodies] == ["first", "second"]
        third = rig.connect()
        third.send_now(post_messages(CONNECT))
        assert handled.count == 3


async def test_others_are_answered_while_connects_are_put_off() -> None:
    with without_faults():
        async with Rig(is_turn_over=lambda: True) as rig:
            [one] = await known(rig, SAY)
            many = [rig.connect() for _ in range(2)]
            one.send_now(SAY)
            rig.turn.is_behind = True
            many[0].send_now(post_messages(CONNECT))
            assert not one.heard().responses
            rig.turn.is_long_over = True
            many[1].send_now(post_messages(CONNECT))
            assert one.heard().responses


async def test_the_rest_of_a_request_comes_after_what_has_been_put_off() -> None:
    async with Rig() as rig:
        client = rig.connect()
        await client.send(HELLO)
        request = post_messages(CONNECT)
        rig.turn.is_behind = True
        client.send_now(request[:-1])
        client.send_now(request[-1:] + SAY)
        await client.settle()
        assert [each.status for each in client.heard().responses] == [200, 200, 200]
        assert b'"/meta/connect"' in client.heard().responses[1].body


async def test_a_message_that_comes_with_a_connect_is_never_put_off() -> None:
    async with Rig() as rig:
        handled = Handled(rig)
        client = rig.connect()
        rig.turn.is_behind = True
        client.send_now(post_messages(PUBLISH, CONNECT))
        assert len(handled.bodies) == 1


async def test_a_connection_may_be_lost_before_it_is_read() -> None:
    async with Rig() as rig:
        handled = Handled(rig)
        client, other = rig.connect(), rig.connect()
        await client.send(HELLO)
        rig.turn.is_behind = True
        client.send_now(post_messages(CONNECT))
        client.protocol.connection_lost(None)
        await other.send(HELLO)
        assert [each == encode(HANDSHAKE) for each in handled.bodies] == [True, True]


async def test_requests_of_the_aiohttp_front_end_keep_their_order() -> None:
    is_over = True
    async with Rig(front_end=FrontEnd.PLAIN_AIOHTTP, is_turn_over=lambda: is_over) as rig:
        handled = Handled(rig)
        *crowd, last = [rig.connect() for _ in range(20)]
        for number, client in enumerate(crowd):
            client.send_now(post_messages({**PUBLISH, "data": number}))
        while not len(rig.endpoint.scheduler._beginnings[RequestKind.OTHER]):
            await last.settle(1)
        # There is time again before all of them have begun.
        is_over = False
        last.send_now(post_messages({**PUBLISH, "data": len(crowd)}))
        await last.settle()
        assert handled.bodies == [encode({**PUBLISH, "data": number}) for number in range(20)]


async def test_a_turn_that_is_over_handles_one_pipelined_request() -> None:
    async with Rig(is_turn_over=lambda: True) as rig:
        handled = Handled(rig)
        client = rig.connect()
        client.send_now(SAY * 20)
        assert await handled.most_in_a_turn(client, 20) == 1
        assert len(client.heard().responses) == 20


async def test_requests_of_the_aiohttp_front_end_begin_a_few_in_a_turn() -> None:
    async with Rig(is_turn_over=lambda: True) as rig:
        clients = [rig.connect() for _ in range(50)]
        for client in clients:
            client.send_now(PROBE)
        answered = [0]
        while answered[-1] < len(clients):
            await client.settle(1)
            answered.append(sum(len(each.heard().responses) for each in clients))
        assert max(after - before for before, after in pairwise(answered)) <= 8


async def test_a_question_does_not_wait_for_the_uploads_of_others() -> None:
    async with Rig(is_turn_over=lambda: True) as rig:
        clients, other = [rig.connect() for _ in range(100)], rig.connect()
        for client in clients:
            client.send_now(SAY[:-1])
        other.send_now(PROBE)
        while not other.heard().responses:
            await other.settle(1)
        assert rig.endpoint.scheduler.is_busy


@pytest.mark.parametrize(
    ("kind", "request_"),
    [
        (RequestKind.UPGRADE, UPGRADE),
        (RequestKind.FIRST_QUESTION, QUESTION),
    ],
)
async def test_a_known_client_does_not_wait_for_a_crowd_of_new_ones(
    kind: RequestKind, request_: bytes
) -> None:
    async with Rig(is_turn_over=lambda: True) as rig:
        known = rig.connect()
        await known.send(QUESTION)
        crowd = [rig.connect() for _ in range(100)]
        for client in crowd:
            client.send_now(request_)
        known.send_now(QUESTION)
        while len(known.heard().responses) < 2:
            await known.settle(1)
        assert kind is kind_of(request_, is_first=True)
        assert sum(len(each.heard().responses) for each in crowd) < 50


async def test_a_probe_waits_for_no_crowd_of_known_clients() -> None:
    async with Rig(is_turn_over=lambda: True) as rig:
        crowd, probe = [rig.connect() for _ in range(100)], rig.connect()
        for client in crowd:
            await client.send(QUESTION)
        for client in crowd:
            client.send_now(QUESTION)
        probe.send_now(PROBE)
        while not probe.heard().responses:
            await probe.settle(1)
        assert sum(len(each.heard().responses) == 2 for each in crowd) < 50


@pytest.mark.interpreted
async def test_a_large_body_of_a_script_is_decoded_a_step_in_a_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps, take_step = 0, Salvage.go_on

    def counted(salvage: Salvage) -> bool:
        nonlocal steps
        steps += 1
        return take_step(salvage)

    monkeypatch.setattr(Salvage, "go_on", counted)
    # Each number is beyond what a double holds.
    body = b"[" + b",".join([b'{"channel":"/a","data":1e400}'] * 200) + b"]"
    assert len(body) > SMALL
    async with Rig() as rig:
        client = rig.connect()
        client.send_now(post(body, path="/publish"))
        while not client.heard().responses:
            before = steps
            await client.settle(1)
            assert steps <= before + 1
        assert steps > 200


async def test_pipelined_requests_of_the_aiohttp_front_end_begin_one_in_a_turn() -> None:
    async with Rig(is_turn_over=lambda: True) as rig:
        client = rig.connect()
        client.send_now(PROBE * 20)
        answered = [0]
        while answered[-1] < 20:
            await client.settle(1)
            answered.append(len(client.heard().responses))
        assert max(after - before for before, after in pairwise(answered)) == 1


async def test_a_request_whose_client_goes_before_its_turn_keeps_nobody_waiting() -> None:
    async with Rig(is_turn_over=lambda: True) as rig:
        gone, other = rig.connect(), rig.connect()
        for client in (gone, other):
            client.send_now(PROBE)
        gone.transport.lose()
        await other.settle()
        assert len(other.heard().responses) == 1


async def test_a_turn_that_is_over_handles_one_frame() -> None:
    async with Rig(is_turn_over=lambda: True) as rig:
        handled = Handled(rig)
        clients = [rig.connect() for _ in range(5)]
        for client in clients:
            await client.send(UPGRADE)
        for client in clients:
            client.send_now(frame(encode(PUBLISH)) * 4)
        assert await handled.most_in_a_turn(client, 20) == 1


async def test_a_small_request_goes_ahead_of_requests_that_go_on() -> None:
    is_over = False
    async with Rig(is_turn_over=lambda: is_over) as rig:
        handled = Handled(rig)
        *busy, other = [rig.connect() for _ in range(20)]
        await other.send(HELLO)
        is_over = True
        for each in busy:
            each.send_now(post_messages(*({**message, "clientId": "another"} for message in MANY)))
        while handled.count < 1 + len(busy):
            await other.settle(1)
        await other.send(SAY)
        assert len(other.heard().responses) == 2
        assert sum(len(each.heard().responses) for each in busy) < len(busy)


async def test_other_small_requests_go_ahead_of_connects() -> None:
    async with Rig(is_turn_over=lambda: True) as rig:
        clients = await known(rig, *[post_messages(CONNECT)] * 20)
        [other] = await known(rig, SAY)
        handled = Handled(rig)
        for client in clients:
            client.send_now(post_messages(CONNECT))
        other.send_now(SAY)
        while not other.heard().responses:
            await other.settle(1)
        assert handled.count < 5
        while handled.count < 21:
            await other.settle(1)


async def test_small_requests_that_wait_have_one_step_each_before_any_has_two() -> None:
    is_over = True
    async with Rig(is_turn_over=lambda: is_over) as rig:
        request = post_messages(*({**PUBLISH, "clientId": "x"} for _ in range(3)))
        *clients, last = await known(rig, *[request] * 5, HELLO)
        for client in clients:
            client.send_now(request)
        last.send_now(HELLO)
        is_over = False
        await last.settle(3)
        assert [len(each.heard().responses) for each in (*clients, last)] == [0] * 5 + [1]


# Of a size that takes long to decode.
LARGE = {**PUBLISH, "data": "x" * 5000}


def test_the_large_request_of_these_tests_is_large() -> None:
    assert len(encode(PUBLISH)) < SMALL < len(encode(LARGE))


@pytest.mark.parametrize("front_end", FrontEnd)
async def test_only_one_of_many_large_requests_is_decoded_in_a_turn(
    front_end: FrontEnd,
) -> None:
    with without_faults():
        async with Rig(front_end=front_end, is_turn_over=lambda: True) as rig:
            first, *clients = [rig.connect() for _ in range(20)]
            await first.send(HELLO)
            for client in clients:
                client.send_now(post_messages(LARGE))
            first.send_now(SAY)
            published = [rig.bayeux.state.hub.counters.published]
            while published[-1] < 1 + len(clients):
                await first.settle(1)
                published.append(rig.bayeux.state.hub.counters.published)
            # The small one does not wait; in its turn one of the large ones may be handled, too.
            steps = [after - before for before, after in pairwise(published)]
            assert max(steps) <= 2
            assert steps.count(2) <= 1
            await first.settle()
            assert all(len(each.heard().responses) == 1 for each in clients)
            assert rig.endpoint.intake.used == 0


@pytest.mark.parametrize("front_end", FrontEnd)
async def test_after_a_slow_large_request_others_get_as_much_time(
    front_end: FrontEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each request takes a fifth of a second of the processor.
    monkeypatch.setattr(request_scheduler, "thread_time", count(0.0, 0.2).__next__)
    async with Rig(front_end=front_end) as rig:
        large, other = rig.connect(), rig.connect()
        await other.send(HELLO)
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        await large.send(post_messages(LARGE))
        await large.send(post_messages(LARGE))
        assert len(large.heard().responses) == 1
        await other.send(SAY)
        assert len(other.heard().responses) == 2
        for _ in range(1000):
            if len(large.heard().responses) == 2:
                break
            await asyncio.sleep(0.01)
        assert len(large.heard().responses) == 2
        assert loop.time() - began_at >= 0.2


async def test_small_requests_go_on_while_large_ones_wait_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Each step takes a minute of the processor.
    monkeypatch.setattr(request_scheduler, "thread_time", count(0.0, 60.0).__next__)
    is_over = False
    async with Rig(is_turn_over=lambda: is_over) as rig:
        large, waiting, small = rig.connect(), rig.connect(), rig.connect()
        await small.send(HELLO)
        is_over = True
        await large.send(post_messages(LARGE))
        waiting.send_now(post_messages(LARGE))
        small.send_now(post_messages(*MANY))
        await small.settle()
        assert [len(each.heard().responses) for each in (large, waiting, small)] == [1, 0, 2]


async def test_large_requests_wait_after_another_one_took_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The first is interrupted after one of its messages; the second takes a minute.
    is_over = iter((False,))
    monkeypatch.setattr(
        request_scheduler, "thread_time", chain([0.0, 0.0, 0.0], repeat(60.0)).__next__
    )
    async with Rig(is_turn_over=lambda: next(is_over, False)) as rig:
        first, second = rig.connect(), rig.connect()
        await first.send(HELLO)
        # The first question is whether to parse it now.
        is_over = iter((False, False, True))
        first.send_now(post_messages(LARGE, LARGE))
        second.send_now(post_messages({**LARGE, "clientId": "another"}))
        await first.settle()
        assert [len(each.heard().responses) for each in (first, second)] == [1, 1]


@pytest.mark.parametrize("front_end", FrontEnd)
async def test_an_unfit_message_is_refused_alone_over_many_turns(front_end: FrontEnd) -> None:
    with without_faults():
        async with Rig(front_end=front_end, is_turn_over=lambda: True) as rig:
            client = rig.connect()
            await client.send(HELLO)
            messages = [LARGE, {**LARGE, "data": "\ud800"}, LARGE]
            await client.send(post(json.dumps(messages).encode(), [f"Cookie: {COOKIE}"]))
            [answer] = client.heard().responses[1:]
            found = [reply["successful"] for reply in json.loads(answer.body)]
            assert found == [True, False, True]
            await client.send(post(b'[{"data":"\\ud800%b"},NaN]' % (b"x" * SMALL)))
            assert client.heard().responses[-1].status == 400
            assert rig.endpoint.intake.used == 0


async def test_a_socket_is_closed_when_a_later_turn_finds_no_json() -> None:
    async with Rig(is_turn_over=lambda: True) as rig:
        client = rig.connect()
        await client.send(UPGRADE, frame(encode(HANDSHAKE)))
        await client.send(frame(b'[{"data":"\\ud800"},NaN]'))
        assert b"\x03\xef400:NaN is not JSON:request_malformed" in bytes(client.transport.written)


@pytest.mark.parametrize("front_end", FrontEnd)
async def test_large_requests_have_a_place_while_they_wait_or_are_refused(
    front_end: FrontEnd,
) -> None:
    is_over = False
    async with Rig(front_end=front_end, is_turn_over=lambda: is_over) as rig:
        one, other = rig.connect(), rig.connect()
        await one.send(HELLO)
        request = post_messages(LARGE)
        most = rig.endpoint.intake.limit
        rig.endpoint.intake.take(most - len(encode(LARGE)))
        # Otherwise the fast lane would handle them one after the other.
        rig.right.is_silent = front_end is FrontEnd.FAST_LANE
        one.send_now(request)
        other.send_now(request)
        is_over = True
        rig.right.speak_again()
        await one.settle()
        assert [each.heard().responses[-1].status for each in (one, other)] == [200, 503]
        await other.send(request)
        assert other.heard().responses[-1].status == 200


async def test_a_socket_whose_message_finds_no_place_is_closed_to_come_again() -> None:
    async with Rig() as rig:
        client = rig.connect()
        await client.send(UPGRADE, frame(encode(HANDSHAKE)))
        rig.endpoint.intake.take(rig.endpoint.intake.limit)
        await client.send(frame(encode(LARGE)))
        assert b"\x03\xf3503::server_busy" in bytes(client.transport.written)


async def test_a_large_request_that_is_refused_or_fails_in_its_turn_gives_its_place_back() -> None:
    async with Rig(is_turn_over=lambda: True) as rig:
        client = rig.connect()
        await client.send(HELLO, post(b"[" + b" " * 5000))
        rig.endpoint.scheduler.handle = Mock(side_effect=RuntimeError("a fault of ours"))
        await client.send(post_messages(LARGE))
        assert [each.status for each in client.heard().responses] == [200, 400, 503]
        assert rig.endpoint.intake.used == 0


async def test_other_requests_are_answered_between_two_parts_of_a_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with Rig(is_turn_over=lambda: True) as rig:
        busy, other = rig.connect(), rig.connect()
        await busy.send(HELLO)
        answered: list[int] = []
        go_on = RemainingMessages.go_on

        def note(rest: RemainingMessages, bayeux: Bayeux, now: float) -> bool:
            answered.append(len(other.heard().responses))
            return go_on(rest, bayeux, now)

        monkeypatch.setattr(RemainingMessages, "go_on", note)
        busy.send_now(post_messages(*MANY))
        other.send_now(HELLO)
        await busy.settle()
        assert answered[1] == 1
        assert len(busy.heard().responses) == 2


async def test_others_are_answered_before_a_part_of_a_request_continues(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with Rig(is_turn_over=lambda: True) as rig:
        busy, other = rig.connect(), rig.connect()
        await busy.send(HELLO)
        answered: list[int] = []
        go_on = RemainingMessages.go_on

        def note(rest: RemainingMessages, bayeux: Bayeux, now: float) -> bool:
            answered.append(len(other.heard().responses))
            return go_on(rest, bayeux, now)

        monkeypatch.setattr(RemainingMessages, "go_on", note)
        busy.send_now(post_messages(*MANY))
        await busy.settle(1)
        other.send_now(HELLO)
        await busy.settle()
        assert answered[0] == 1


@pytest.mark.parametrize("front_end", FrontEnd)
async def test_a_session_does_not_expire_while_its_request_waits_unread(
    front_end: FrontEnd,
) -> None:
    async with Rig(front_end=front_end, is_turn_over=lambda: True) as rig:
        client = rig.connect()
        await client.send(HELLO)
        client.send_now(post_messages(LARGE))
        while rig.unread.since() == inf:
            await client.settle(1)
        rig.pass_time(LONG_S)
        await client.settle()
        assert b'"successful":true' in client.heard().responses[-1].body
        assert rig.unread.since() == inf
        rig.pass_time(LONG_S)
        assert len(rig.bayeux.state.sessions) == 0


async def test_a_session_does_not_expire_unread_although_the_console_has_its_own_cookie() -> None:
    async with Rig(front_end=FrontEnd.FAST_LANE, is_turn_over=lambda: True) as rig:
        cookie = BrowserCookie(Settings(browser_cookie_path="/admin"))
        console = replace(rig.endpoint, cookie=cookie)
        assert console.cookie is not rig.endpoint.cookie
        client = rig.connect()
        await client.send(HELLO)
        client.send_now(post_messages(LARGE))
        rig.pass_time(LONG_S)
        await client.settle()
        assert b'"successful":true' in client.heard().responses[-1].body
