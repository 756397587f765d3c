"""Replies do not depend on the process that has the connection."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.web.forwarding.frames import FrameReader, FrameUnreadable, Kind, pack
from tests.abuse.attacker import frame
from tests.effort import TIMES
from tests.web.forwarding.stage import TURNS, pair
from tests.web.forwarding.test_forwarding import UPGRADE_WITH_COOKIE
from tests.web.front_ends import VOLATILE
from tests.web.requests import (
    CLIENT_ID,
    CONNECT,
    DISCONNECT,
    HANDSHAKE,
    PUBLISH,
    SUBSCRIBE,
    encode,
    post,
    post_messages,
)
from tests.web.rig import Client, Rig, less

NOW: Final = {**CONNECT, "advice": {"timeout": 0}}
UNSUBSCRIBE: Final = {**SUBSCRIBE, "channel": "/meta/unsubscribe"}
ECHO: Final = {**PUBLISH, "data": {"clientId": "another's", "say": 'a "clientId": here'}}
ODD: Final = {**PUBLISH, "data": "\\u0041 \U0001f600", "id": "odd"}
MESSAGES: Final[Sequence[Sequence[dict[str, Any]]]] = [
    [NOW],
    [CONNECT],
    [SUBSCRIBE],
    [UNSUBSCRIBE],
    [PUBLISH],
    [ECHO, ODD],
    [SUBSCRIBE, PUBLISH, NOW],
    [{**PUBLISH, "channel": "/*"}],
    [{**PUBLISH, "channel": 7}],
    [{**CONNECT, "connectionType": "pigeon"}],
]
BODIES: Final = [b"{", b"[]", b"7", b'"clientId"', b"[1]", encode(PUBLISH)[:-3]]
# What a client sends, on one of two connections; or None: the server publishes; or time passes.
STEPS = st.one_of(
    st.tuples(st.integers(0, 1), st.sampled_from(MESSAGES)),
    st.tuples(st.integers(0, 1), st.sampled_from(BODIES)),
    st.none(),
    st.floats(0.1, 20.0),
)
Steps = Sequence[Any]


class Player:
    """Plays steps at a rig, over HTTP or a socket, and returns what the client hears."""

    def __init__(self, door: Rig, home: Rig, *, is_socket: bool) -> None:
        self.door, self.home, self.is_socket = door, home, is_socket
        self.clients: list[Client] = []

    async def begin(self) -> None:
        count = 1 if self.is_socket else 2
        self.clients = [self.door.connect() for _ in range(count)]
        if self.is_socket:
            self.clients[0].send_now(UPGRADE_WITH_COOKIE)
            await self.settle()
        await self.send(0, [HANDSHAKE])
        await self.send(0, [SUBSCRIBE])

    async def send(self, place: int, what: Sequence[dict[str, Any]] | bytes) -> None:
        body = what if isinstance(what, bytes) else encode(*what)
        client = self.clients[place % len(self.clients)]
        if self.is_socket:
            client.send_now(frame(body))
        elif isinstance(what, bytes):
            client.send_now(post(body, ["Content-Type: application/json"]))
        else:
            client.send_now(post_messages(*what))
        await self.settle()

    async def settle(self) -> None:
        for client in self.clients:
            await client.settle(TURNS)

    async def play(self, steps: Steps) -> list[list[str]]:
        await self.begin()
        for number, step in enumerate(steps):
            if step is None:
                self.home.server.publish("/news", number)
                await self.settle()
            elif isinstance(step, float):
                self.home.pass_time(step)
                await self.settle()
            else:
                await self.send(*step)
        await self.send(0, [DISCONNECT])
        return [less(client.heard(), *VOLATILE).lines() for client in self.clients]


class StillLoop(asyncio.SelectorEventLoop):
    """A loop whose time stands still, so that a busy machine is not late for anything."""

    def time(self) -> float:
        return 1000.0


def run(playing: Coroutine[None, None, list[list[str]]]) -> list[list[str]]:
    with asyncio.Runner(loop_factory=StillLoop) as runner:
        return runner.run(playing)


async def at_home(steps: Steps, *, is_socket: bool) -> list[list[str]]:
    async with Rig() as rig:
        return await Player(rig, rig, is_socket=is_socket).play(steps)


async def by_a_door(steps: Steps, *, is_socket: bool) -> list[list[str]]:
    async with pair() as both:
        heard = await Player(both.door, both.home, is_socket=is_socket).play(steps)
        # A request behind a held connect waits for that.
        assert len(both.far._exchanges) == len(both.far._numbers) <= 2
        assert all(session.pauses == 0 for session in both.home.bayeux.state.sessions)
        return heard


@pytest.mark.slow
@pytest.mark.parametrize("is_socket", [False, True], ids=["long-polling", "websocket"])
@given(steps=st.lists(STEPS, max_size=14))
@settings(max_examples=20 * TIMES)
def test_a_client_hears_the_same_by_the_door_of_another_process(
    is_socket: bool, steps: Steps
) -> None:
    expected = run(at_home(steps, is_socket=is_socket))
    assert run(by_a_door(steps, is_socket=is_socket)) == expected


def test_the_steps_name_the_session_that_the_client_has() -> None:
    assert all(CLIENT_ID.encode() in encode(*messages) for messages in MESSAGES)


FRAMES = st.tuples(st.sampled_from(Kind), st.integers(0, 2**64 - 1), st.binary(max_size=40))


@given(st.lists(FRAMES, max_size=8), st.integers(1, 30))
def test_frames_are_read_as_they_were_written_whatever_their_pieces(
    frames: list[tuple[Kind, int, bytes]], piece: int
) -> None:
    data = b"".join(pack(*each) for each in frames)
    reader = FrameReader()
    pieces = [data[at : at + piece] for at in range(0, len(data), piece)]
    assert [each for part in pieces for each in reader.read(part)] == frames


@given(st.binary(max_size=200))
def test_what_is_no_frame_is_refused_or_waits_for_more(data: bytes) -> None:
    try:
        found = FrameReader().read(data)
    except FrameUnreadable:
        return
    assert sum(len(content) for _, _, content in found) <= len(data)
