"""More than a thousand connections move from one process to another.

`pytest -s` shows what that costs.
"""

import asyncio
import json
import os
import resource
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from time import monotonic, process_time

import pytest

from tests.abuse.attacker import PING, frame
from tests.serving import ROOT, environment
from tests.web.doors.stage import LIMIT_S, PATIENT, Stage, Talk, door, stage
from tests.web.doors.test_handing_over import GET, HELLO
from tests.web.rig import without_faults
from tests.web.test_faults import UPGRADE

# The loop that servers have; the tests beside this one hand over with both.
pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_factories=["uvloop"])]

PINGED, PONG = frame(b"hi", PING), b"\x8a\x02hi"
# Many times as many as go through the door at once, and descriptors beyond 1024.
MANY = 1200
# Generous: the machine may be busy.
MOST_S = 60.0


@pytest.fixture(autouse=True)
def _many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 3 * MANY:
        pytest.skip("the limit of open files is low")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def many(house: Stage, *requests: bytes) -> list[Talk]:
    """Clients that have sent one of these requests each."""
    clients: list[Talk] = []
    while len(clients) < MANY:
        some = await asyncio.gather(*(house.connect() for _ in range(100)))
        for place, client in enumerate(some, len(clients)):
            client.send(requests[place % len(requests)])
        clients += some
    for client in clients:
        await client.until(b"\r\n\r\n")
    return clients


@asynccontextmanager
async def successor(
    house: Stage, theirs: socket.socket
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Another process, with the socket at which `house` listens, and this end of the door."""
    given = [str(theirs.fileno()), str(house.old.listening.fileno())]
    with theirs:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.web.doors.successor", given[1], given[0]),
            cwd=ROOT,
            env=environment(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            pass_fds=[int(each) for each in given],
        )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        assert await process.stdout.readline() == b"ready\n"
        yield process
    finally:
        # Otherwise it waits for them.
        await house.end_talks()
        process.stdin.close()
        await process.wait()


@pytest.mark.parametrize("kind", ["requests", "sockets"])
async def test_more_than_a_thousand_connections_go_on_in_another_process(kind: str) -> None:
    requests = {"requests": [GET, HELLO], "sockets": [UPGRADE]}[kind]
    async with stage(options=PATIENT) as house:
        clients = await many(house, *requests)
        ours, theirs = door()
        async with successor(house, theirs) as process:
            assert process.stdout is not None
            with without_faults():
                began_s, cpu_s = monotonic(), process_time()
                await house.old.leaving.pause(LIMIT_S)
                paused_s = monotonic() - began_s
                await house.old.leaving.settle(LIMIT_S)
                done = await house.old.leaving.hand_over(ours, limit_s=MOST_S, last_limit_s=LIMIT_S)
                took_s, cpu_s = monotonic() - began_s, process_time() - cpu_s
            adopted, their_cpu_s = json.loads(await process.stdout.readline())
            assert (done.passed, done.closed, adopted) == (MANY, 0, MANY)
            sys.stdout.write(
                f"\n{kind}: {MANY} in {took_s:.3f} s, of which {paused_s:.3f} s to pause; us of "
                f"processor time each: {cpu_s / MANY * 1e6:.0f} here and "
                f"{their_cpu_s / MANY * 1e6:.0f} there; load {os.getloadavg()[0]:.1f}\n"
            )
            assert took_s < MOST_S
            for place, client in enumerate(clients):
                is_socket = requests[place % len(requests)] is UPGRADE
                client.send(PINGED if is_socket else GET)
                await client.until(PONG if is_socket else b"ok\n")


async def test_nothing_hangs_if_the_successor_dies_in_between() -> None:
    async with stage(options=PATIENT) as house:
        clients = await many(house, GET)
        ours, theirs = door()
        async with successor(house, theirs) as process:
            await house.leave()
            # It is too busy to take any, so the door fills.
            process.send_signal(signal.SIGSTOP)
            leaving = asyncio.create_task(
                house.old.leaving.hand_over(ours, limit_s=MOST_S, last_limit_s=LIMIT_S)
            )
            await asyncio.sleep(0.3)
            assert not leaving.done()
            process.kill()
            async with asyncio.timeout(LIMIT_S):
                done = await leaving
            assert done.passed > 0
            assert done.passed + done.closed == MANY
            assert all(each.is_lost() for each in house.old.listener.lanes())
            for client in clients:
                assert await client.is_closed()
