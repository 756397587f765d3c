"""A request is handled behind the earlier ones of its client, whatever has to wait."""

import asyncio
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bayeux.exchanges import receive
from holdfast.bayeux.server import Bayeux
from holdfast.bayeux.session import Exchange
from tests.web.requests import PUBLISH, encode, post, post_messages
from tests.web.rig import Client, Rig, without_faults
from tests.web.test_faults import UPGRADE
from tests.web.test_reading_aside import lane

pytestmark = pytest.mark.untraced

# Every second client has no cookie.
CLIENTS, CONNECTIONS = 4, 3
# In so many turns everything is handled.
TURNS = 400


@dataclass(frozen=True)
class Sent:
    """A request: whose it is, on which of its connections, and how it comes."""

    client: int
    connection: int
    has_new_head: bool
    size: int
    # Where it is cut, if it is, and how many other pieces come before the rest.
    cut: int
    between: int


@dataclass(frozen=True)
class Volley:
    """What arrives in one turn, which has time for some of it, and what happens then."""

    requests: list[Sent]
    time_for: int
    turns: int
    is_there_time: bool


@dataclass(frozen=True)
class Piece:
    """Bytes that arrive together, and the bodies of requests that begin and end with them."""

    link: Client
    data: bytes
    client: int
    begins: bytes = b""
    ends: bytes = b""


GET = b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"


class World:
    """Clients with some connections each, what has arrived of them, and what was handled."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self._ids = count()
        self._links: dict[tuple[int, int], Client] = {}
        self._sent: dict[tuple[int, int], int] = {}
        self.arrived: list[tuple[int, bytes]] = []
        # What of its client was here when a request began.
        self.before: dict[bytes, list[bytes]] = {}
        self.handled: list[bytes] = []
        rig.endpoint.scheduler.handle = self._handle

    def _handle(self, bayeux: Bayeux, body: bytes, exchange: Exchange, now: float) -> Any:
        self.handled.append(body)
        return receive(bayeux, body, exchange, now)

    def has_answers(self, place: tuple[int, int]) -> bool:
        """Whether a connection has the answers to all of its requests."""
        heard = self._links[place].heard().responses if place in self._links else []
        return len(heard) == self._sent.get(place, 0)

    def pieces_of(self, sent: Sent, *, is_late: bool) -> list[Piece]:
        """The pieces of a request; none if its connection waits for an answer."""
        place = sent.client, sent.connection
        if not self.has_answers(place):
            return []
        if place not in self._links:
            self._links[place] = self._rig.connect()
        self._sent[place] = self._sent.get(place, 0) + 1
        link, number = self._links[place], next(self._ids)
        message = {**PUBLISH, "clientId": f"session-{sent.client}", "id": str(number)}
        body = encode({**message, "data": "x" * sent.size})
        headers = ["Content-Type: application/json"]
        if sent.client % 2:
            headers.append(f"Cookie: a=b; BAYEUX_BROWSER=browser-{sent.client}; c=d")
        if sent.has_new_head:
            headers.append(f"X-Number: {number}")
        data = post(body, headers)
        # The first bytes tell whose it is. A body that comes behind a head that was parsed is
        # handled by aiohttp, later than others; so are known heads if there is some time.
        known = data.index(b"; c=d") if sent.client % 2 else data.index(b'"data"')
        waits_whole = is_late and sent.has_new_head
        end = len(data) if waits_whole else len(data) - len(body)
        cut = known + sent.cut % (end - known) if sent.cut and known < end else 0
        if not cut:
            return [Piece(link, data, sent.client, body, body)]
        first, rest = data[:cut], data[cut:]
        return [Piece(link, first, sent.client, body), Piece(link, rest, sent.client, b"", body)]

    def receive(self, piece: Piece) -> None:
        if piece.begins:
            before = [body for client, body in self.arrived if client == piece.client]
            self.before[piece.begins] = before
        if piece.ends:
            self.arrived.append((piece.client, piece.ends))
        piece.link.send_now(piece.data)

    def are_all_answered(self) -> bool:
        return all(map(self.has_answers, self._links))


class Story:
    def __init__(self, volleys: list[Volley]) -> None:
        self._volleys = volleys
        self._is_over = False

    async def play(self) -> World:
        async with Rig(is_turn_over=lambda: self._is_over) as rig:
            world = World(rig)
            for volley in self._volleys:
                self._fire(world, volley)
                self._is_over = not volley.is_there_time
                await _pass_turns(volley.turns)
            self._is_over = False
            await _pass_turns(TURNS)
            assert not rig.scheduler.is_busy
            assert world.are_all_answered()
            return world

    def _fire(self, world: World, volley: Volley) -> None:
        rests: list[tuple[int, Piece]] = []
        for number, sent in enumerate(volley.requests):
            self._is_over = number >= volley.time_for
            for piece in [each for due, each in rests if due == number]:
                world.receive(piece)
            pieces = world.pieces_of(sent, is_late=self._is_over)
            if pieces:
                world.receive(pieces[0])
            rests = [each for each in rests if each[0] > number]
            rests += [(number + 1 + sent.between, piece) for piece in pieces[1:]]
        for _, piece in rests:
            world.receive(piece)


async def _pass_turns(number: int) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


SENT = st.builds(
    Sent,
    client=st.integers(0, CLIENTS - 1),
    connection=st.integers(0, CONNECTIONS - 1),
    has_new_head=st.booleans(),
    size=st.sampled_from([1, 30, 2000]),
    cut=st.one_of(st.just(0), st.integers(0, 2**16)),
    between=st.integers(0, 3),
)
VOLLEYS = st.builds(
    Volley,
    requests=st.lists(SENT, max_size=12),
    time_for=st.integers(0, 12),
    turns=st.integers(1, 30),
    is_there_time=st.booleans(),
)


@given(st.lists(VOLLEYS, max_size=6))
def test_each_client_is_heard_in_the_order_in_which_it_speaks(volleys: list[Volley]) -> None:
    with without_faults():
        world = asyncio.run(Story(volleys).play())
    # Nothing is lost, and nothing comes twice.
    assert sorted(world.handled) == sorted(body for _, body in world.arrived)
    for place, body in enumerate(world.handled):
        assert set(world.before[body]) <= set(world.handled[:place])


def say(number: int, cookie: str) -> bytes:
    return post_messages({**PUBLISH, "data": number}, cookie=cookie)


async def in_line(rig: Rig, count: int) -> list[Client]:
    """Clients whose requests wait, each with a head that is new on its connection."""
    clients = [rig.connect() for _ in range(count)]
    for number, client in enumerate(clients):
        client.send_now(say(number, f"BAYEUX_BROWSER=b{number}"))
    return clients


async def test_a_client_that_leaves_while_it_waits_leaves_nothing_behind() -> None:
    with without_faults():
        async with Rig(is_turn_over=lambda: True) as rig:
            clients = await in_line(rig, 5)
            for client in clients[1:]:
                client.transport.lose()
            await _pass_turns(TURNS)
            assert clients[0].heard().responses
            assert not rig.scheduler.is_busy
            assert not any(client.transport.written for client in clients[1:])


@pytest.mark.parametrize("is_refused", [False, True])
async def test_nothing_is_written_to_a_client_that_has_left(*, is_refused: bool) -> None:
    with without_faults():
        async with Rig(is_turn_over=lambda: True) as rig:
            client = rig.connect()
            client.send_now(post(b"{", ["Content-Type: application/json"]) if is_refused else GET)
            client.transport.lose()
            await _pass_turns(TURNS)
            assert client.transport.written == b""


async def test_a_client_in_line_that_sends_much_is_read_again_when_it_was_handled() -> None:
    async with Rig(is_turn_over=lambda: True) as rig:
        [client] = await in_line(rig, 1)
        rest = post_messages({**PUBLISH, "data": "x" * 9000})
        client.send_now(rest[:1000])
        assert client.transport.is_reading()
        client.send_now(rest[1000:])
        assert not client.transport.is_reading()
        await client.settle(TURNS)
        assert client.transport.is_reading()
        assert [each.status for each in client.heard().responses] == [200, 200]


async def test_a_question_does_not_wait_behind_all_the_heads_of_others() -> None:
    async with Rig(is_turn_over=lambda: True) as rig:
        clients, other = await in_line(rig, 50), rig.connect()
        other.send_now(GET)
        await other.settle(24)
        assert len(other.heard().responses) == 1
        assert not clients[-1].heard().responses


async def test_an_upgrade_is_no_question() -> None:
    async with Rig(is_turn_over=lambda: True) as rig:
        crowd, other = [rig.connect() for _ in range(20)], rig.connect()
        for each in crowd:
            each.send_now(UPGRADE)
        other.send_now(GET)
        await other.settle(24)
        assert len(other.heard().responses) == 1
        assert not crowd[-1].heard().responses
        await other.settle(TURNS)
        assert crowd[-1].heard().responses[0].status == 101


async def test_another_address_does_not_wait_behind_all_the_heads_of_one() -> None:
    async with Rig(is_turn_over=lambda: True) as rig:
        clients, other = await in_line(rig, 50), rig.connect()
        lane(other)._address = b"192.0.2.1"
        other.send_now(say(0, "BAYEUX_BROWSER=other"))
        await other.settle(12)
        assert len(other.heard().responses) == 1
        assert not clients[-1].heard().responses
