"""Simulated clients: what one connection does for several that ask at a time."""

import asyncio

import pytest

from tests.simulation.process import Process
from tests.simulation.talker import Message, Talker
from tests.simulation.world import World

pytestmark = pytest.mark.untraced

SERVER, PORT = "10.0.0.1", 7000
_ANSWER = b'HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\n[{"channel":"/a"}]'


async def answer_late(process: Process) -> None:
    class Late(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.Transport)
            self.transport = transport

        def data_received(self, _: bytes) -> None:
            process.loop.call_later(0.5, self.transport.write, _ANSWER)

    await process.loop.create_server(Late, SERVER, PORT)
    await process.is_asked_to_end.wait()


def test_two_who_ask_over_one_connection_are_answered_one_after_the_other() -> None:
    answers: list[list[Message]] = []

    async def ask(_: Process) -> None:
        talker = Talker([(SERVER, PORT)])

        async def once() -> None:
            answers.append(await talker.ask([{"channel": "/a"}], limit_s=2.0))

        async with asyncio.TaskGroup() as group:
            group.create_task(once())
            group.create_task(once())
        talker.hang_up()

    with World(1) as world:
        world.start("server", answer_late, host=SERVER)
        world.start("client", ask)
        world.run_for(3.0)
        assert not world.failures
    assert answers == [[{"channel": "/a"}]] * 2
