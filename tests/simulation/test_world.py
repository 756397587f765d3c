"""The simulated world: time, processes and connections obey the seed and nothing else."""

import asyncio
import os
import random
import secrets
import subprocess
import sys
import time
import uuid

import pytest

from tests.serving import ROOT, environment
from tests.simulation.process import Life, Main, Process
from tests.simulation.world import World

pytestmark = pytest.mark.untraced

SERVER, PORT = "10.0.0.1", 7000


async def serve_echoes(process: Process) -> None:
    class Echo(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.Transport)
            self.transport = transport

        def data_received(self, data: bytes) -> None:
            self.transport.write(data)

    await process.loop.create_server(Echo, SERVER, PORT)
    await process.is_asked_to_end.wait()


def asking(lines: list[bytes], *, count: int = 5) -> Main:
    """Return a client that sends numbers, and collects their echoes."""

    async def ask(_: Process) -> None:
        reader, writer = await asyncio.open_connection(SERVER, PORT)
        for number in range(count):
            writer.write(b"%d %s\n" % (number, secrets.token_hex(4).encode()))
            await asyncio.sleep(0.1 * random.random())
        writer.write_eof()
        while line := await reader.readline():
            lines.append(line)
        writer.close()

    return ask


def play(seed: int) -> tuple[str, list[bytes]]:
    lines: list[bytes] = []
    with World(seed) as world:
        world.start("server", serve_echoes, host=SERVER)
        for each in range(3):
            world.start(f"client {each}", asking(lines))
        world.run_for(3.0)
        assert not world.failures
    return world.trace.digest, lines


def test_a_seed_decides_everything_that_happens() -> None:
    assert play(1) == play(1)
    assert play(1)[0] != play(2)[0]


def test_a_seed_decides_the_same_in_another_process() -> None:
    code = "from tests.simulation.test_world import play; print(play(3)[0])"
    other = {**environment(), "PYTHONHASHSEED": "random"}
    found = subprocess.run(
        [sys.executable, "-c", code], env=other, cwd=ROOT, capture_output=True, check=True
    )
    assert found.stdout.decode().strip() == play(3)[0]


def cancelled() -> list[int]:
    """The numbers of tasks in the order in which their groups have cancelled them."""
    ended: list[int] = []

    async def last(number: int) -> None:
        try:
            await asyncio.sleep(100)
        finally:
            ended.append(number)

    async def run() -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(5):
                group.create_task(last(number))

    async def cancel(_: Process) -> None:
        while len(ended) < 100:
            group = asyncio.create_task(run())
            await asyncio.sleep(0.1)
            group.cancel()
            await asyncio.wait([group])

    with World(1) as world:
        world.start("client", cancel)
        world.run_for(3.0)
        assert not world.failures
    return ended


def test_groups_cancel_their_tasks_in_the_same_order_in_each_run() -> None:
    found = cancelled()
    # Addresses of objects have another order from now on.
    ballast = [object() for _ in range(1000)][::3]
    assert cancelled() == found
    assert len(found) == 100
    assert ballast


def test_bytes_arrive_in_order_and_once() -> None:
    for seed in range(20):
        lines: list[bytes] = []
        with World(seed) as world:
            world.start("server", serve_echoes, host=SERVER)
            world.start("client", asking(lines, count=50))
            world.run_for(10.0)
        assert [int(line.split()[0]) for line in lines] == [*range(50)]


def test_all_that_a_process_asks_its_system_for_comes_from_the_world() -> None:
    def answers(seed: int) -> tuple[object, ...]:
        found: list[object] = []

        async def ask(process: Process) -> None:
            await asyncio.sleep(1.0)
            found.extend((time.time(), time.time_ns(), time.monotonic(), time.perf_counter()))
            found.extend((time.clock_gettime(time.CLOCK_BOOTTIME), os.urandom(8), os.getpid()))
            found.extend((random.random(), secrets.token_hex(8), secrets.choice("abc")))
            found.append(uuid.uuid4())

        with World(seed) as world:
            world.start("process", ask)
            world.run_for(2.0)
        return tuple(found)

    assert len(answers(1)) == 11
    assert answers(1) == answers(1)
    assert all(one != other for one, other in zip(answers(1)[:6], answers(2)[:6], strict=True))


def test_outside_the_world_the_system_answers() -> None:
    with World(1):
        assert abs(time.time() - time.time_ns() / 1e9) < 1.0
        assert os.getpid() > 1
    assert time.monotonic.__module__ == "time"


def test_clocks_of_machines_run_at_different_rates() -> None:
    took: list[float] = []

    async def wait(process: Process) -> None:
        await asyncio.sleep(10.0)
        took.append(process.world.now)

    with World(5) as world:
        for each in range(20):
            world.start(f"machine {each}", wait)
        world.run_for(12.0)
    assert len(took) == 20
    assert 9.0 < min(took) < 9.5
    assert 10.5 < max(took) < 11.2


def beating(beats: list[float]) -> Main:
    async def beat(process: Process) -> None:
        while True:
            beats.append(process.world.now)
            await asyncio.sleep(0.1)

    return beat


def test_a_frozen_process_does_nothing_until_it_thaws() -> None:
    beats: list[float] = []
    with World(6) as world:
        process = world.start("process", beating(beats))
        world.run_for(1.0)
        monotonic = process.monotonic()
        process.freeze()
        world.run_for(5.0)
        assert beats[-1] < 1.01
        process.thaw()
        assert process.monotonic() - monotonic > 4.0
        world.run_for(1.0)
        assert beats[-1] > 6.8


def test_nothing_runs_on_a_suspended_machine_and_its_clocks_but_one_stand_still() -> None:
    earlier: list[float] = []
    later: list[float] = []
    with World(6) as world:
        process = world.start("earlier", beating(earlier), machine="laptop")
        world.run_for(1.0)
        monotonic, boot = process.monotonic(), process.boot()
        process.clocks.suspend(world.now)
        world.start("later", beating(later), machine="laptop")
        world.run_for(5.0)
        assert earlier[-1] < 1.01
        assert later == []
        process.clocks.resume(world.now)
        assert process.boot() - boot > 4.0
        assert process.monotonic() - monotonic < 0.1
        world.run_for(1.0)
        assert earlier[-1] > 6.8
        assert len(later) in range(8, 13)


def test_a_frozen_process_accepts_connections_and_answers_later() -> None:
    lines: list[bytes] = []
    with World(7) as world:
        server = world.start("server", serve_echoes, host=SERVER)
        world.run_for(0.1)
        server.freeze()
        world.start("client", asking(lines))
        world.run_for(3.0)
        assert lines == []
        server.thaw()
        world.run_for(0.1)
        assert len(lines) == 5


def test_the_connections_of_a_killed_process_break() -> None:
    seen: list[str] = []

    async def read(process: Process) -> None:
        reader, writer = await asyncio.open_connection(SERVER, PORT)
        try:
            await reader.readline()
        except ConnectionResetError:
            seen.append("reset")
        writer.close()
        try:
            await asyncio.open_connection(SERVER, PORT)
        except ConnectionRefusedError:
            seen.append("refused")

    with World(8) as world:
        server = world.start("server", serve_echoes, host=SERVER)
        world.start("client", read)
        world.run_for(1.0)
        server.kill()
        world.run_for(1.0)
        assert server.life is Life.ENDED
    assert seen == ["reset", "refused"]


def test_a_connection_breaks_after_as_many_bytes_as_the_world_decides() -> None:
    received: list[bytes] = []

    async def read(process: Process) -> None:
        reader, writer = await asyncio.open_connection(SERVER, PORT)
        await asyncio.sleep(0.5)
        writer.write(b"0123456789")
        try:
            while data := await reader.read(100):
                received.append(data)
        except ConnectionResetError:
            received.append(b"reset")

    with World(9) as world:
        world.start("server", serve_echoes, host=SERVER)
        world.start("client", read, host="10.0.0.2")
        world.run_for(0.2)
        [end] = world.network.open_connections("10.0.0.2", SERVER)
        end.peer.breaks_after = 4
        world.run_for(1.0)
    assert received == [b"0123", b"reset"]


def test_what_a_held_connection_carries_arrives_when_it_is_let_go() -> None:
    lines: list[bytes] = []
    with World(10) as world:
        world.start("server", serve_echoes, host=SERVER)
        world.start("client", asking(lines, count=20), host="10.0.0.2")
        # The client has sent its first number.
        world.run_until(lambda: bool(world.network.open_connections("10.0.0.2", SERVER)), 1.0)
        [end] = world.network.open_connections("10.0.0.2", SERVER)
        end.peer.hold()
        world.run_for(5.0)
        assert lines == []
        end.peer.let_go()
        world.run_for(1.0)
    assert [int(line.split()[0]) for line in lines] == [*range(20)]


def test_a_writer_waits_while_its_reader_does_not_read() -> None:
    written: list[int] = []
    read: list[int] = []

    async def write(process: Process) -> None:
        _, writer = await asyncio.open_connection(SERVER, PORT)
        for _ in range(64):
            writer.write(bytes(32 * 1024))
            await writer.drain()
            written.append(32 * 1024)
        writer.close()

    async def sleep_and_read(process: Process) -> None:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await asyncio.sleep(5.0)
            while data := await reader.read(100_000):
                read.append(len(data))

        def make() -> asyncio.StreamReaderProtocol:
            return asyncio.StreamReaderProtocol(asyncio.StreamReader(), handle)

        await process.loop.create_server(make, SERVER, PORT)
        await process.is_asked_to_end.wait()

    with World(11) as world:
        world.start("reader", sleep_and_read, host=SERVER)
        world.start("writer", write)
        world.run_for(4.0)
        assert sum(written) < 1024 * 1024
        world.run_for(10.0)
    assert sum(read) == sum(written) == 64 * 32 * 1024


def test_callbacks_of_one_process_keep_their_order() -> None:
    order: list[tuple[str, int]] = []

    async def schedule(process: Process) -> None:
        for number in range(100):
            process.loop.call_soon(order.append, (process.name, number))
        await asyncio.sleep(0.1)

    with World(12) as world:
        world.start("one", schedule)
        world.start("other", schedule)
        world.run_for(1.0)
    assert order != sorted(order)
    for name in ("one", "other"):
        assert [number for who, number in order if who == name] == [*range(100)]


def test_what_cleans_up_after_a_world_is_part_of_its_process() -> None:
    found: list[int] = []

    async def clean_up_late(_: Process) -> None:
        try:
            await asyncio.sleep(60.0)
        finally:
            found.append(os.getpid())

    with World(1) as world:
        process = world.start("server", clean_up_late, host=SERVER)
        world.run_for(1.0)
        assert not found
    assert found == [process.pid]
