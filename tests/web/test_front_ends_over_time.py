"""Two clients that connect, leave, wait and stop reading get the same answers at each front end."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import TIMES
from tests.web.front_ends import (
    HELLO,
    OPTIONS,
    VOLATILE,
)
from tests.web.requests import (
    CONNECT,
    DISCONNECT,
    PUBLISH,
    SUBSCRIBE,
    ids_of_session,
    post_messages,
)
from tests.web.rig import LONG_S, FrontEnd, Rig, less, without_faults

# Long searches, also on a machine that has other things to do.
pytestmark = [pytest.mark.usefixtures("nothing_blocks"), pytest.mark.timeout(240)]


IDS = [ids_of_session(1), ids_of_session(2)]


def said_by(who: int, message: Mapping[str, object]) -> bytes:
    client_id, cookie = IDS[who]
    return post_messages({**message, "clientId": client_id}, cookie=cookie)


POLL = {**CONNECT, "advice": {"timeout": 0}}
# The first only publishes: of two held connects, either may be answered first.
SAYINGS = st.one_of(
    st.tuples(st.just(0), st.sampled_from([PUBLISH, PUBLISH, POLL])),
    st.tuples(st.just(1), st.sampled_from([CONNECT, CONNECT, CONNECT, POLL, PUBLISH, DISCONNECT])),
)
EVENTS = st.one_of(
    st.tuples(st.just("say"), SAYINGS),
    st.tuples(st.just("say"), SAYINGS),
    st.tuples(st.just("say"), SAYINGS),
    st.tuples(st.just("begin to say"), SAYINGS),
    st.tuples(
        st.sampled_from(["drop", "stop reading", "read on"]),
        st.tuples(st.integers(min_value=0, max_value=1), st.none()),
    ),
    # Times whose sums never equal a time limit of the server.
    st.tuples(st.just("wait"), st.tuples(st.just(0), st.sampled_from([1.3, 12.7, 45.1]))),
)
Event = tuple[str, tuple[int, Any]]


class Scene:
    """Two clients at a rig, each with a session, and all that they heard."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self._clients = [rig.connect(), rig.connect()]
        self._begun = [b"", b""]
        # The clients that do not read, and whether each has sent its one further request: how many
        # are handled before its connection is stuck is not defined.
        self._deaf: dict[int, bool] = {}
        self.heard: list[str] = []

    async def begin(self) -> None:
        for who, client in enumerate(self._clients):
            await client.send(HELLO, said_by(who, SUBSCRIBE), said_by(who, CONNECT))

    async def play(self, event: str, who: int, what: Any) -> None:
        if self._clients[who].is_over():
            await self._drop(who)
        client = self._clients[who]
        if event == "say":
            await self._send(who, said_by(who, what))
        elif event == "begin to say":
            raw = said_by(who, what)
            await self._send(who, raw[:90])
            self._begun[who] = raw[90:]
        elif event == "drop":
            await self._drop(who)
        elif event == "wait":
            self._rig.pass_time(what)
        elif event == "stop reading":
            self._deaf.setdefault(who, False)
            client.transport.stop_reading()
        else:
            self._deaf.pop(who, None)
            client.transport.read_on()
        await client.settle()

    async def end(self) -> None:
        for who in (0, 1):
            await self.play("read on", who, None)
        for _ in range(3):
            self._rig.pass_time(LONG_S)
            await self._clients[0].settle()
        for who in (0, 1):
            await self._drop(who)

    async def _send(self, who: int, data: bytes) -> None:
        if who in self._deaf:
            if self._deaf[who]:
                return
            self._deaf[who] = True
        rest, self._begun[who] = self._begun[who], b""
        await self._clients[who].send(*([rest] if rest else []), data)

    async def _drop(self, who: int) -> None:
        client = self._clients[who]
        self.heard += [f"{who} {line}" for line in less(client.heard(), *VOLATILE).lines()]
        client.transport.lose()
        await client.settle()
        self._clients[who] = self._rig.connect()
        self._deaf.pop(who, None)
        self._begun[who] = b""


async def heard_at(front_end: FrontEnd, events: list[Event]) -> list[str]:
    with without_faults():
        async with Rig(front_end=front_end, options=OPTIONS) as rig:
            scene = Scene(rig)
            await scene.begin()
            for event, (who, what) in events:
                await scene.play(event, who, what)
            await scene.end()
            return scene.heard


@pytest.mark.slow
@settings(max_examples=30 * TIMES)
@given(st.lists(EVENTS, max_size=10))
def test_both_front_ends_answer_alike_whatever_two_clients_do(events: list[Event]) -> None:
    async def compare_front_ends() -> None:
        fast, ordinary, plain = [await heard_at(front_end, events) for front_end in FrontEnd]
        assert fast == ordinary
        assert fast == plain

    asyncio.run(compare_front_ends())
