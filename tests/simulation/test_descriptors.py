"""Simulated processes give connections to others of their machine, as real ones do."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from tests.simulation.descriptors import (
    Connected,
    Descriptor,
    Descriptors,
    PacketListener,
    Packets,
    Sockets,
    bound,
)
from tests.simulation.process import Process
from tests.simulation.world import World

pytestmark = pytest.mark.untraced

SERVER, PORT = "10.0.0.1", 7000
PLACE = Path("given")


class Answering(asyncio.Protocol):
    """Answers with its own name and what it has read."""

    def __init__(self, name: bytes) -> None:
        self.name = name

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(self.name + data)


class Giving(Answering):
    """Gives its connection away with the first bytes that it reads."""

    def __init__(self, gives: Callable[[Descriptor, bytes], None]) -> None:
        super().__init__(b"giver:")
        self.gives = gives

    def data_received(self, data: bytes) -> None:
        self.gives(self.transport.get_extra_info("socket").fileno(), data)
        self.transport.abort()


class Machine:
    """Two processes, one of which gives its connections to the other."""

    def __init__(self, world: World, *, takes: bool = True) -> None:
        self.heard: list[bytes] = []
        self.kept: list[Descriptor] = []
        self.link = Packets()
        self.taker = world.start("taker", self._take, host=SERVER)
        world.run_for(0.01)
        if not takes:
            self.taker.freeze()
        self.giver = world.start("giver", self._give, host=SERVER)
        world.start("client", self._ask, host="10.0.0.2")

    async def _give(self, process: Process) -> None:
        self.link.connect(str(PLACE))

        def give(descriptor: Descriptor, data: bytes) -> None:
            self.kept.append(cast("Descriptor", Descriptors.dup(descriptor)))
            Sockets.send_fds(self.link, [data], [descriptor])

        await process.loop.create_server(lambda: Giving(give), SERVER, PORT)
        await process.is_asked_to_end.wait()

    async def _take(self, process: Process) -> None:
        loop: Any = process.loop

        def take(link: Packets) -> None:
            data, [descriptor], *_ = Sockets.recv_fds(link, 100, 1)
            loop.create_task(go_on(descriptor, data))

        async def go_on(descriptor: Descriptor, data: bytes) -> None:
            connected = Sockets.socket(fileno=descriptor)
            assert isinstance(connected, Connected)
            guest = Answering(b"taker:")
            await loop.connect_accepted_socket(lambda: guest, connected)
            guest.data_received(data)

        def accept(listening: PacketListener) -> None:
            link, _ = listening.accept()
            loop.add_reader(link, take, link)

        listening = bound(PLACE, Sockets.SOCK_SEQPACKET)
        loop.add_reader(listening, accept, listening)
        await process.is_asked_to_end.wait()

    async def _ask(self, _: Process) -> None:
        reader, writer = await asyncio.open_connection(SERVER, PORT)
        try:
            for number in range(2):
                writer.write(b"%d" % number)
                self.heard.append(await reader.read(100))
        except ConnectionResetError:
            self.heard.append(b"reset")
        writer.close()


def test_a_given_connection_goes_on_in_the_other_process() -> None:
    with World(1) as world:
        machine = Machine(world)
        world.run_for(1.0)
        assert not world.failures
        assert machine.heard == [b"taker:0", b"taker:1"]


def test_it_does_not_break_when_its_giver_is_killed() -> None:
    with World(2) as world:
        machine = Machine(world)
        world.run_until(lambda: bool(machine.kept), 1.0)
        machine.giver.kill()
        world.run_for(1.0)
        assert machine.heard == [b"taker:0", b"taker:1"]


def test_it_breaks_when_the_last_process_ends_that_has_it() -> None:
    with World(3) as world:
        machine = Machine(world, takes=False)
        world.run_until(lambda: bool(machine.kept), 1.0)
        machine.taker.kill()
        world.run_for(0.1)
        assert machine.heard == []
        machine.giver.kill()
        world.run_for(0.1)
        assert machine.heard == [b"reset"]


def test_a_giver_learns_that_the_other_process_has_ended_and_read_nothing() -> None:
    with World(4) as world:
        machine = Machine(world, takes=False)
        world.run_until(lambda: bool(machine.kept), 1.0)
        with pytest.raises(BlockingIOError):
            machine.link.receive()
        machine.taker.kill()
        with pytest.raises(ConnectionResetError):
            machine.link.receive()
        assert machine.link.receive() == (b"", [])


def test_who_reads_nothing_of_what_came_breaks_the_way() -> None:
    one, other = Packets(), Packets()
    one.peer, other.peer = other, one
    one.send(b"x")
    other.send(b"y")
    other.close()
    with pytest.raises(ConnectionResetError):
        one.receive()
    # What was sent before still arrives.
    assert one.receive() == (b"y", [])
    assert one.receive() == (b"", [])
    with pytest.raises(BrokenPipeError):
        one.send(b"x")


def test_only_processes_of_the_same_machine_find_each_other() -> None:
    failed: list[Exception] = []

    async def connect(_: Process) -> None:
        try:
            Packets().connect(str(PLACE))
        except OSError as error:
            failed.append(error)

    async def listen(process: Process) -> None:
        bound(PLACE, Sockets.SOCK_SEQPACKET)
        await process.is_asked_to_end.wait()

    with World(5) as world:
        world.start("one", listen, host=SERVER)
        world.run_for(0.1)
        world.start("near", connect, host=SERVER)
        world.start("far", connect, host="10.0.0.3")
        world.run_for(0.1)
        assert not world.failures
    assert [type(each) for each in failed] == [FileNotFoundError]
