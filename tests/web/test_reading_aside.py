"""What takes long to parse, or is much, waits for a later turn; others are answered meanwhile."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import pairwise
from socket import socketpair
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.web.front.fast_lane import FastLane
from holdfast.web.front.reading_aside import _LITTLE, _LOOKED_AT, _MAX_SET_ASIDE, _WITH_MORE
from holdfast.web.scheduling import request_scheduler
from tests.abuse.attacker import frame
from tests.web.front_ends import VOLATILE
from tests.web.requests import (
    CONNECT,
    HANDSHAKE,
    PUBLISH,
    chunked,
    encode,
    post,
    post_messages,
)
from tests.web.rig import Client, Rig, less, without_faults
from tests.web.test_faults import UPGRADE

# Long searches, also on a machine that has other things to do.
pytestmark = pytest.mark.timeout(240)

HELLO = post_messages(HANDSHAKE, cookie="")
GET = b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"
JSON = ["Content-Type: application/json"]
# JSON may have any white space.
SPACES = encode(PUBLISH)[:-1] + b" " * 10_000 + b"]"
IN_CHUNKS = chunked(SPACES, 1, JSON)
# What asyncio and uvloop read at once.
MOST_READ = 256 * 1024
TURNS = 1500
# Turns in which nothing happens, after which nothing will.
QUIET = 12


def upload(size: int) -> bytes:
    return post(encode({**PUBLISH, "data": "x" * size}), JSON)


def lane(client: Client) -> FastLane:
    assert isinstance(client.protocol, FastLane)
    return client.protocol


async def until_answered(client: Client, count: int) -> None:
    for _ in range(TURNS):
        if len(client.heard().responses) >= count:
            break
        await client.settle(1)


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes were parsed at a time."""
    found: list[int] = []
    parse = FastLane._parse

    def note(self: FastLane, data: bytes) -> None:
        found.append(len(data))
        parse(self, data)

    monkeypatch.setattr(FastLane, "_parse", note)
    return found


async def test_chunks_are_parsed_in_smaller_pieces_than_other_bodies(sizes: list[int]) -> None:
    async with Rig() as rig:
        client = rig.connect()
        await client.send(HELLO)
        sizes.clear()
        client.send_now(IN_CHUNKS)
        await client.settle()
        assert len(sizes) > 1
        assert max(sizes) <= 8192
        assert sum(sizes) == len(IN_CHUNKS)
        sizes.clear()
        client.send_now(upload(200_000))
        await client.settle()
        assert max(sizes) == _MAX_SET_ASIDE
        assert [each.status for each in client.heard().responses] == [200, 200, 200]


async def test_what_is_much_waits_if_the_turn_is_over_and_others_do_not(sizes: list[int]) -> None:
    async with Rig(is_turn_over=lambda: True) as rig:
        clients, other = [rig.connect() for _ in range(20)], rig.connect()
        await other.send(GET)
        sizes.clear()
        for client in clients:
            client.send_now(upload(9000))
        assert sizes == []
        assert not any(client.transport.is_reading() for client in clients)
        await other.send(GET)
        assert len(other.heard().responses) == 2
        for client in clients:
            await until_answered(client, 1)
        assert all(client.heard().responses[-1].status == 200 for client in clients)
        assert all(client.transport.is_reading() for client in clients)


async def test_requests_on_several_connections_are_parsed_in_order_of_arrival(
    sizes: list[int],
) -> None:
    is_over = False
    async with Rig(is_turn_over=lambda: is_over) as rig:
        clients = [newcomer(rig) for _ in range(20)]
        for number, client in enumerate(clients):
            is_over = number % 2 == 1
            client.send_now(upload(2000 + number))
        is_over = False
        await client.settle()
        assert len(sizes) == len(clients)
        assert sizes == sorted(sizes)


def newcomer(rig: Rig) -> Client:
    """A connection that may be evicted, as those of an acceptor."""
    client = rig.connect()
    rig.room.enter(client.protocol, client.transport.abort)
    return client


async def test_connections_without_a_request_wait_while_there_is_too_much_to_read() -> None:
    async with Rig(is_turn_over=lambda: True) as rig:
        known, *new = [newcomer(rig) for _ in range(4)]
        await known.send(GET)
        rig.connect().send_now(upload(9000))
        assert known.transport.is_reading()
        assert not any(each.transport.is_reading() for each in new)
        await asyncio.sleep(0)
        assert all(each.transport.is_reading() for each in new)
        for each in new:
            each.send_now(GET)
            await until_answered(each, 1)
            assert [response.status for response in each.heard().responses] == [200]


async def test_connections_made_meanwhile_wait_behind_those_that_wait() -> None:
    async with Rig(is_turn_over=lambda: True) as rig:
        earlier = newcomer(rig)
        rig.connect().send_now(upload(9000))
        later = [newcomer(rig) for _ in range(_LOOKED_AT)]
        assert reading([earlier, *later]) == []
        await asyncio.sleep(0)
        assert reading([earlier, *later]) == [*range(_LOOKED_AT)]
        last = newcomer(rig)
        assert not last.transport.is_reading()
        await asyncio.sleep(0)
        assert last.transport.is_reading()
        assert newcomer(rig).transport.is_reading()


def reading(clients: Sequence[Client]) -> list[int]:
    """The numbers of those of these clients that are read."""
    return [number for number, each in enumerate(clients) if each.transport.is_reading()]


async def test_in_each_turn_some_are_read_for_which_much_has_arrived() -> None:
    async with Rig(is_turn_over=lambda: True) as rig:
        clients = [newcomer(rig) for _ in range(_WITH_MORE + 6)]
        *_, with_little, closed, lost = clients
        with ExitStack() as stack:
            for client in clients:
                client.transport.socket, other = socketpair()
                stack.enter_context(client.transport.socket)
                stack.enter_context(other)
                other.send(b"x" * (_LITTLE + (client is not with_little)))
            closed.transport.socket.close()
            first = rig.connect()
            first.send_now(upload(9000))
            assert reading(clients) == []
            lost.transport.lose()
            await asyncio.sleep(0)
            last = len(clients) - 1
            assert reading(clients) == [*range(_WITH_MORE), last - 2, last - 1]
            rig.connect().send_now(upload(9000))
            await asyncio.sleep(0)
            assert reading(clients) == [*range(last)], "nobody waits again before all were read"


async def test_a_piece_of_chunks_waits_however_small_it_is(sizes: list[int]) -> None:
    is_over = False
    async with Rig(is_turn_over=lambda: is_over) as rig:
        client = rig.connect()
        await client.send(HELLO, IN_CHUNKS[:500])
        is_over = True
        sizes.clear()
        client.send_now(IN_CHUNKS[500:600])
        assert sizes == []
        client.send_now(IN_CHUNKS[600:])
        await until_answered(client, 2)
        assert client.heard().responses[-1].status == 200


async def test_a_client_that_leaves_with_bytes_aside_leaves_nothing_behind() -> None:
    async with Rig(is_turn_over=lambda: True) as rig:
        client = rig.connect()
        client.send_now(IN_CHUNKS)
        client.transport.lose()
        await client.settle(TURNS)
        assert lane(client).aside() == b""


async def test_a_connection_is_not_silent_while_its_request_waits() -> None:
    async with Rig(is_turn_over=lambda: True) as rig:
        client = rig.connect()
        await client.send(HELLO)
        client.send_now(post_messages(PUBLISH))
        connection = lane(client)
        # The time that a connection may be silent ends.
        connection._keepalive_handle = None
        connection._next_keepalive_close_time = 0.0
        connection._end_silence()
        await until_answered(client, 2)
        assert [each.status for each in client.heard().responses] == [200, 200]


async def test_what_arrived_behind_a_held_connect_in_one_piece_waits_without_a_limit() -> None:
    async with Rig() as rig:
        client = rig.connect()
        hold = post_messages({**CONNECT, "advice": {"timeout": 30_000}})
        await client.send(HELLO, post_messages({**CONNECT, "advice": {"timeout": 0}}))
        client.send_now(hold + b"".join(upload(50_000) for _ in range(4)))
        await client.settle()
        assert not client.transport.is_reading()
        assert len(client.heard().responses) == 2
        rig.pass_time(40)
        await until_answered(client, 7)
        assert [each.status for each in client.heard().responses] == [200] * 7
        assert client.transport.is_reading()


async def test_frames_behind_a_request_and_an_upgrade_are_heard_in_order() -> None:
    async with Rig(is_turn_over=lambda: True) as rig:
        client = rig.connect()
        client.transport.stop_reading()
        client.send_now(HELLO)
        await client.settle()
        # The client does not read its first response yet.
        client.send_now(UPGRADE + frame(b"one", opcode=9))
        client.send_now(frame(b"two", opcode=9))
        await client.settle()
        client.transport.read_on()
        await client.settle()
        client.send_now(frame(b"three", opcode=9))
        await client.settle()
        written = bytes(client.transport.written)
        places = [written.find(each) for each in (b"HTTP/1.1 101", b"one", b"two", b"three")]
        assert -1 not in places
        assert places == sorted(places)


# Any bytes, cut anywhere, have the same effect as if every turn had time to parse everything.

STEADY: dict[str, Callable[[int], bytes]] = {
    "question": lambda size: GET * (1 + size % 40),
    "chunks": lambda size: chunked(SPACES, (1, 7, 5000)[size % 3], JSON),
    "upload": upload,
    "publishes": lambda size: post_messages(PUBLISH) * (1 + size % 40),
    "connect": lambda size: post_messages({**CONNECT, "advice": {"timeout": 0}}),
    "expectation": lambda size: post(encode(PUBLISH), [*JSON, "Expect: 100-continue"]),
    "no JSON": lambda size: post(b"{", JSON),
    "refused upgrade": lambda size: UPGRADE.replace(b"Version: 13", b"Version: 12"),
}
LARGE: dict[str, Callable[[int], bytes]] = {
    "large upload": lambda size: upload(350 * size),
    "large chunks": lambda size: chunked(SPACES * 5, 20 * size + 1, JSON),
}
# These end the connection, or turn it into a socket.
LAST: dict[str, Callable[[int], bytes]] = {
    "nothing": lambda size: b"",
    "frames": lambda size: UPGRADE + b"".join(frame(b"%d" % n, opcode=9) for n in range(700)),
    "large frame": lambda size: UPGRADE + frame(encode({**PUBLISH, "data": "x" * 9 * size})),
    "half an upload": lambda size: upload(9 * size)[:-100],
    "half of the chunks": lambda size: IN_CHUNKS[: 20 * size],
    "half a head": lambda size: post_messages(PUBLISH)[: size % 100],
    "the last request": lambda size: post(encode(PUBLISH), [*JSON, "Connection: close"]),
    "HTTP/1.0": lambda size: b"GET /healthz HTTP/1.0\r\nHost: h\r\n\r\n",
}
ALL = {**STEADY, **LARGE, **LAST}
CUTS = st.lists(st.integers(0, 2**31), max_size=6)


def cut(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    """The data in pieces, none longer than what is read at once."""
    places = {0, len(data), *range(0, len(data), MOST_READ)}
    places |= {each % (len(data) + 1) for each in cuts}
    return [data[begin:end] for begin, end in pairwise(sorted(places))]


class Story:
    """What a client hears that sends these pieces and half-closes; some turns have no time."""

    def __init__(self, pieces: Sequence[bytes], over: Sequence[bool], pause: int) -> None:
        self._pieces, self._over, self._pause = pieces, over, pause
        self._asked = 0
        self.most_aside = 0

    def _is_over(self) -> bool:
        self._asked += 1
        return bool(self._over) and self._over[self._asked % len(self._over)]

    async def _turn(self, client: Client) -> None:
        await client.settle(1)
        connection = lane(client)
        self.most_aside = max(self.most_aside, connection._size_aside)
        if connection._set_aside and connection._is_full:
            assert not client.transport.is_reading()

    async def _until_quiet(self, client: Client, rig: Rig) -> None:
        quiet, before = 0, (-1, -1)
        for _ in range(TURNS):
            await self._turn(client)
            after = len(client.transport.written), lane(client)._size_aside + len(client._unread)
            is_busy = rig.scheduler.is_busy or lane(client).is_unsettled()
            quiet, before = 0 if is_busy or after != before else quiet + 1, after
            if quiet > QUIET:
                return

    async def heard(self) -> list[str]:
        with without_faults():
            async with Rig(is_turn_over=self._is_over) as rig:
                client = rig.connect()
                await client.send(HELLO)
                for piece in self._pieces:
                    client.send_now(piece)
                    for _ in range(self._pause):
                        await self._turn(client)
                    if not self._pause:
                        await self._until_quiet(client, rig)
                await self._until_quiet(client, rig)
                assert lane(client).aside() == b"" or client.is_over()
                assert client.transport.is_reading() or client.is_over()
                return less(client.heard(), *VOLATILE).lines()


Requests = list[tuple[str, int]]


def play(pieces: Sequence[bytes], over: Sequence[bool], pause: int) -> list[str]:
    story = Story(pieces, over, pause)
    # However slow the machine is.
    with patch.object(request_scheduler, "thread_time", lambda: 0.0):
        heard = asyncio.run(story.heard())
    assert story.most_aside <= _MAX_SET_ASIDE + MOST_READ + 4096
    return heard


OVER = st.lists(st.booleans(), min_size=1, max_size=5).filter(any)


def sent(requests: Requests) -> bytes:
    return b"".join(ALL[name](size) for name, size in requests)


def requests_of(*kinds: str, most: int = 4) -> st.SearchStrategy[list[tuple[str, int]]]:
    return st.lists(st.tuples(st.sampled_from(kinds), st.integers(0, 3000)), max_size=most)


LASTS = requests_of(*LAST, most=1)


@pytest.mark.slow
@given(requests_of(*STEADY), LASTS, CUTS, OVER, st.integers(0, 4))
def test_clients_hear_the_same_however_much_waits(
    requests: Requests, last: Requests, cuts: list[int], over: list[bool], pause: int
) -> None:
    # More than may arrive behind a request would be cut, or not, as the answer is late or early.
    pieces = cut(sent(requests + last)[: _MAX_SET_ASIDE - 1000], cuts)
    assert play(pieces, over, pause) == play(pieces, [], 0)


@pytest.mark.slow
@given(requests_of(*STEADY, *LARGE), LASTS, CUTS, OVER)
def test_uploads_are_answered_alike_however_much_waits(
    requests: Requests, last: Requests, cuts: list[int], over: list[bool]
) -> None:
    pieces = cut(sent(requests + last), cuts)
    assert play(pieces, over, 0) == play(pieces, [], 0)
