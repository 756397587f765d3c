"""A hot standby takes over when the server ends, and not before.

Both have supervisors, one worker or several. HOLDFAST_TAKEOVERS says how often to kill a server
whose standby gets a publish; -s shows how long it takes.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from holdfast.store.format.keys import RedisKeys
from tests.chaos.stage import Stage
from tests.chaos.twin import LIMIT_S, NOBODY, STANDBY, Twin
from tests.slowness import times_slower

pytestmark = pytest.mark.slow

# From the kill until the standby is ready. A quiet machine needs 3.5 s.
TAKES_OVER_S = 12.0
# Longer than a lease lasts.
PAUSE_S = 4.0
TAKEOVERS = int(os.environ.get("HOLDFAST_TAKEOVERS", "1"))
JOE = {"ack": True, "delivery": {"session": "joe/1"}}
ORDER = {"channel": "/orders", "data": 1, "ext": {"delivery": {"persistent": True}}}


class Pair(Stage):
    """A server and its standby, with the same settings."""

    def __init__(
        self, home: Path, stack: AsyncExitStack, workers: int = 1, **settings: Any
    ) -> None:
        super().__init__(home, stack)
        self.workers = workers
        self.first = self.twin("first", **settings)
        self.second = self.twin("second", **settings)

    def twin(self, name: str, **settings: Any) -> Twin:
        found = self.server(name, kind=Twin, workers=self.workers, **settings)
        assert isinstance(found, Twin)
        return found

    async def begin(self) -> None:
        """Have the first one serve, and the second one wait."""
        await self.first.start()
        self.second.begin()
        await self.second.waits()

    def holders(self) -> list[object]:
        return [
            self.store.ask("HGET", RedisKeys("holdfast", shard).meta, "node")
            for shard in range(self.workers)
        ]


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    async with AsyncExitStack() as stack:
        yield Pair(tmp_path, stack)


@pytest.fixture
async def threes(tmp_path: Path) -> AsyncIterator[Pair]:
    async with AsyncExitStack() as stack:
        # A worker that a test freezes for some seconds is to go on, however busy the machine is.
        yield Pair(tmp_path, stack, workers=3, frozen_timeout=60_000)


async def test_a_standby_says_what_it_waits_for_and_takes_over_when_the_machine_is_gone(
    threes: Pair,
) -> None:
    await threes.begin()
    url = f"{threes.second.url}/cometd"
    async with (
        aiohttp.ClientSession() as http,
        http.post(url, json=[{"channel": "/meta/handshake"}]) as response,
    ):
        assert response.status == 503
        assert "Retry-After" in response.headers
    await asyncio.sleep(PAUSE_S)
    assert await threes.second.readiness() == (503, STANDBY)
    assert (await threes.first.readiness())[0] == 200
    await threes.first.kill_all()
    took_s = await threes.second.serves()
    assert took_s < TAKES_OVER_S * times_slower()
    sys.stdout.write(f"\n{took_s:.2f} s until three workers serve\n")
    assert {*threes.holders()} == {
        b"second",
        *(f"second/{n}".encode() for n in range(1, 3)),
    }


async def test_a_server_that_is_killed_serves_again_although_another_one_waits(pair: Pair) -> None:
    await pair.begin()
    for _ in range(2):
        await pair.first.kill()
        await pair.first.answers(lambda found: found != NOBODY)
        await pair.first.serves()
    assert "waiting for the lease" not in pair.first.log()
    assert await pair.second.readiness() == (503, STANDBY)


async def test_a_standby_that_has_taken_over_serves_again_after_its_server_was_killed(
    pair: Pair,
) -> None:
    await pair.begin()
    await pair.first.kill_all()
    await pair.second.serves()
    await pair.second.kill()
    await pair.second.serves()
    pair.first.begin()
    await pair.first.waits()


async def test_a_standby_that_waits_stops_in_order(threes: Pair) -> None:
    await threes.begin()
    began = time.monotonic()
    assert await threes.second.stop() == 0
    assert time.monotonic() - began < TAKES_OVER_S * times_slower()
    assert await threes.second.readiness() == NOBODY
    assert (await threes.first.readiness())[0] == 200


async def unanswered(twin: Twin, until: asyncio.Event) -> int:
    """How often nobody answers, or somebody else than one who waits."""
    count = 0
    timeout = aiohttp.ClientTimeout(total=LIMIT_S)
    while not until.is_set():
        # The next connection goes to whoever answers by then.
        async with aiohttp.ClientSession(timeout=timeout) as http:
            try:
                async with http.get(f"{twin.url}/readyz") as response:
                    count += await response.text() != STANDBY
            except aiohttp.ClientError:
                count += 1
        await asyncio.sleep(0.05)
    return count


async def processes_of(twin: Twin, are_they: Callable[[list[int]], bool]) -> list[int]:
    """Wait until its workers are these. Those that are left or given up end a little later."""
    async with asyncio.timeout(LIMIT_S):
        while not are_they(found := await twin.workers()):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return found


async def successors(twin: Twin, of: list[int]) -> list[int]:
    """Wait until as many others are there, and none of these."""
    return await processes_of(twin, lambda now: len(now) == len(of) and not {*now} & {*of})


async def test_a_standby_that_waits_is_restarted_and_killed_on_one_kept_socket(
    threes: Pair,
) -> None:
    await threes.begin()
    second = threes.second
    over = asyncio.Event()
    asking = asyncio.create_task(unanswered(second, over))

    former = await second.workers()
    os.kill(second.supervisor_pid, signal.SIGHUP)
    await second.until(lambda: "the restart is done" in second.lines())
    former = await successors(second, of=former)

    assert await second.restart() == ""
    former = await successors(second, of=former)

    second.write_settings("standby = true", "standby = 3")
    assert "standby" in await second.restart()
    second.write_settings("standby = 3", "standby = true")
    await processes_of(second, lambda found: found == former)

    over.set()
    assert await asking == 0
    for pid in former:
        os.kill(pid, signal.SIGKILL)
    # Clients wait at the socket until another one answers.
    assert await second.readiness() in ((503, STANDBY), NOBODY)
    await second.waits()
    assert (await threes.first.readiness())[0] == 200
    await threes.first.kill_all()
    await second.serves()


async def test_a_standby_that_waits_survives_settings_that_became_wrong(pair: Pair) -> None:
    await pair.begin()
    pair.second.write_settings("standby = true", "standby = 3")
    for pid in await pair.second.workers():
        os.kill(pid, signal.SIGKILL)
    await pair.second.until(lambda: "another is started" in pair.second.log())
    pair.second.write_settings("standby = 3", "standby = true")
    await pair.second.waits()
    assert pair.second.is_running


async def test_a_standby_that_waits_ends_with_its_supervisor_and_can_start_again(
    pair: Pair,
) -> None:
    await pair.begin()
    left = await pair.second.workers()
    os.kill(pair.second.supervisor_pid, signal.SIGKILL)
    await pair.second.ended()
    await pair.second.until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in left))
    pair.second.begin()
    await pair.second.waits()


async def test_a_worker_that_is_silent_for_longer_than_its_lease_loses_nothing_to_a_standby(
    threes: Pair,
) -> None:
    await threes.begin()
    epochs = [meta_of(threes, shard, "epoch") for shard in range(3)]
    for pid in await threes.first.workers():
        os.kill(pid, signal.SIGSTOP)
        await asyncio.sleep(PAUSE_S)
        assert await threes.second.readiness() == (503, STANDBY)
        os.kill(pid, signal.SIGCONT)
        await threes.first.serves()
        # All leases are raised again before the next one is silent.
        raised = leases(threes)
        await threes.first.until(lambda: not {*raised} & {*leases(threes)})  # noqa: B023
    assert [meta_of(threes, shard, "epoch") for shard in range(3)] == epochs


def meta_of(pair: Pair, shard: int, name: str) -> object:
    return pair.store.ask("HGET", RedisKeys("holdfast", shard).meta, name)


def leases(pair: Pair) -> list[tuple[int, object]]:
    """How often each shard's lease was raised."""
    return [(shard, meta_of(pair, shard, "lease")) for shard in range(pair.workers)]


async def test_a_machine_that_was_frozen_waits_when_it_thaws(threes: Pair) -> None:
    await threes.begin()
    await threes.first.signal_all(signal.SIGSTOP)
    await threes.second.serves()
    await threes.first.signal_all(signal.SIGCONT)
    await threes.first.waits()
    assert (await threes.second.readiness())[0] == 200
    await threes.second.kill_all()
    await threes.first.serves()


async def test_a_server_one_of_whose_workers_lost_its_store_gives_up_all(threes: Pair) -> None:
    await threes.begin()
    former = await threes.first.workers()
    # Another server opens the first shard, as if nobody had looked at the others.
    meta = RedisKeys("holdfast").meta
    epoch = threes.store.ask("HGET", meta, "epoch")
    assert isinstance(epoch, bytes)
    seed, _, number = epoch.decode().partition("-")
    rival = f"{seed}-{int(number.partition('.')[0]) + 1}.aaaaaaaa"
    fields = ("epoch", rival, "holder", "a rival", "lease", "0", "node", "rival")
    # This fences off the former holder, which might release the lease.
    call = ("call", f"aaaaaaaa-{0:012}")
    threes.store.ask("HSET", meta, *fields, *call)
    raising = asyncio.create_task(raised(threes, meta))
    await threes.first.until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in former))
    assert threes.store.ask("HGET", meta, "holder") == b"a rival"
    raising.cancel()
    # Now both wait, and one of them has all.
    await asyncio.wait_for(somebody_serves(threes), LIMIT_S)
    names = {str(each).partition("/")[0].strip("b'") for each in threes.holders()}
    assert len(names) == 1


async def raised(pair: Pair, meta: str) -> None:
    """Raise a lease as a server that lives does."""
    while True:
        pair.store.ask("HINCRBY", meta, "lease", 1)
        await asyncio.sleep(0.2)


async def somebody_serves(pair: Pair) -> None:
    serving = [asyncio.create_task(each.serves()) for each in (pair.first, pair.second)]
    await asyncio.wait(serving, return_when=asyncio.FIRST_COMPLETED)
    for each in serving:
        each.cancel()
    await asyncio.gather(*serving, return_exceptions=True)


async def seconds_to_publish(url: str) -> float:
    """How long it takes until a durable publish is accepted."""
    began = time.monotonic()
    async with aiohttp.ClientSession() as http:
        while True:
            with suppress(aiohttp.ClientError):
                async with http.post(f"{url}/publish", json=ORDER) as response:
                    if response.status == 200 and (await response.json())[0]["successful"]:
                        return time.monotonic() - began
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("number", range(TAKEOVERS))
async def test_a_standby_accepts_durable_publishes_soon_after_a_kill(
    pair: Pair, number: int
) -> None:
    await pair.begin()
    joe = pair.talker(pair.first)
    await joe.handshake(JOE)
    await joe.subscribe("/orders")
    # At another moment between two raises of the lease each time.
    await asyncio.sleep(1.0 + 0.13 * number)
    await pair.first.kill_all()
    took_s = await asyncio.wait_for(seconds_to_publish(pair.second.url), LIMIT_S)
    assert took_s < TAKES_OVER_S * times_slower()
    sys.stdout.write(f"\n{took_s:.2f} s from the kill to the first durable publish\n")


async def test_a_standby_takes_over_at_once_from_a_server_that_stops(pair: Pair) -> None:
    await pair.begin()
    holder = pair.store.ask("HGET", "{holdfast}:meta", "holder")
    assert await pair.first.stop() == 0
    # There is no lease that must end.
    assert pair.store.ask("HGET", "{holdfast}:meta", "holder") != holder
    await pair.second.serves()


async def test_a_second_server_without_standby_is_refused(pair: Pair) -> None:
    await pair.first.start()
    pair.second.write_settings("standby = true", "standby = false")
    with pytest.raises(RuntimeError, match="another server, first, has the store: stop it"):
        await pair.second.start()
    assert pair.first.is_running


async def test_a_server_that_was_killed_starts_again_without_waiting(pair: Pair) -> None:
    await pair.first.start()
    await pair.first.kill_all()
    started_at = time.monotonic()
    await pair.first.start()
    assert "waiting for the lease" not in pair.first.log()
    assert time.monotonic() - started_at < TAKES_OVER_S * times_slower()
