"""What takes long to parse, or is much, waits for a later turn; others are answered meanwhile."""

import asyncio
import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.web.fast_lane import FastLane
from tests.web.front_ends import VOLATILE
from tests.web.requests import CONNECT, HANDSHAKE, PUBLISH, chunked, encode, post, post_messages
from tests.web.rig import Rig, less

HELLO = post_messages(HANDSHAKE, cookie="")
GET = b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"
# JSON may have any white space.
SPACES = encode(PUBLISH)[:-1] + b" " * 10_000 + b"]"
JSON = ["Content-Type: application/json"]
TURNS = 400


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


async def test_chunks_are_parsed_in_small_pieces(sizes: list[int]) -> None:
    async with Rig() as rig:
        client = rig.connect()
        await client.send(HELLO)
        client.send_now(chunked(SPACES, 1, JSON))
        await client.settle(TURNS)
        assert client.heard().responses[-1].status == 200
        assert max(sizes) <= 8192
        assert sum(sizes) == len(HELLO) + len(chunked(SPACES, 1, JSON))
        assert client.transport.is_reading()


async def test_the_rest_of_a_long_parse_waits_for_a_later_turn(sizes: list[int]) -> None:
    async with Rig(is_turn_over=lambda: True) as rig:
        first, other = rig.connect(), rig.connect()
        await other.send(GET)
        sizes.clear()
        first.send_now(chunked(SPACES, 1, JSON))
        assert sizes == []
        assert not first.transport.is_reading()
        await other.send(GET)
        assert len(other.heard().responses) == 2
        await first.settle(TURNS)
        assert first.heard().responses[-1].status == 200
        assert first.transport.is_reading()


async def test_many_uploads_at_once_are_parsed_over_several_turns(sizes: list[int]) -> None:
    async with Rig(is_turn_over=lambda: True) as rig:
        clients = [rig.connect() for _ in range(20)]
        body = encode({**PUBLISH, "data": "x" * 3000})
        for client in clients:
            client.send_now(post(body, JSON))
        assert sizes == []
        assert not any(client.transport.is_reading() for client in clients)
        for client in clients:
            await client.settle()
        assert all(client.heard().responses[-1].status == 200 for client in clients)
        assert all(client.transport.is_reading() for client in clients)


async def test_a_client_that_leaves_with_bytes_aside_leaves_nothing_behind() -> None:
    async with Rig(is_turn_over=lambda: True) as rig:
        client = rig.connect()
        client.send_now(chunked(SPACES, 1, JSON))
        client.transport.lose()
        await client.settle(TURNS)
        protocol = client.protocol
        assert isinstance(protocol, FastLane)
        assert protocol.aside() == b""


REQUESTS = st.one_of(
    st.just(GET),
    st.sampled_from([1, 7, 5000]).map(lambda size: chunked(SPACES, size, JSON)),
    st.integers(0, 3000).map(lambda size: post(encode({**PUBLISH, "data": "x" * size}), JSON)),
    st.just(post_messages({**CONNECT, "advice": {"timeout": 0}})),
    st.just(post(b"{", JSON)),
)


async def hear(data: bytes, cuts: Sequence[int], *, is_over: bool) -> list[str]:
    async with Rig(is_turn_over=lambda: is_over) as rig:
        client = rig.connect()
        await client.send(HELLO)
        places = sorted({0, len(data), *[cut % (len(data) + 1) for cut in cuts]})
        for begin, end in itertools.pairwise(places):
            client.send_now(data[begin:end])
            await client.settle(3)
        await client.settle(TURNS)
        return less(client.heard(), *VOLATILE).lines()


@pytest.mark.slow
@given(st.lists(REQUESTS, max_size=4), st.lists(st.integers(0, 200_000), max_size=4))
@settings(max_examples=60)
def test_clients_hear_the_same_however_much_waits(requests: list[bytes], cuts: list[int]) -> None:
    data = b"".join(requests)
    at_once = asyncio.run(hear(data, cuts, is_over=False))
    assert asyncio.run(hear(data, cuts, is_over=True)) == at_once
