"""Several workers as real processes: they are killed, stopped and restarted under traffic."""

import asyncio
import os
import re
import signal
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import aiohttp
import orjson
import pytest

from holdfast.supervisor.asking import ask
from holdfast.supervisor.control import CONTROL_FILE, Do
from tests.chaos import steps
from tests.chaos.processes import START_LIMIT_S
from tests.chaos.supervised import RESTART_S
from tests.serving import PROGRAM, environment, kill_orphans_in
from tests.web.people import Person
from tests.web.requests import HANDSHAKE

pytestmark = pytest.mark.slow  # each starts several processes

LIMIT_S = START_LIMIT_S
PEOPLE = 6
# What a supervisor says of a worker that it kills because it does not run.
FROZEN = "has not run for"
BROKEN = """
import os
def install(server):
    if os.path.exists("broken"):
        raise ValueError("the test wants it")
"""


class Deployment:
    """A supervisor with its workers, in one data directory."""

    # Whether the test freezes a worker for so long that its supervisor kills it.
    has_frozen = False

    def __init__(self, home: Path, count: int, *more: str) -> None:
        self.home, self.count = home, count
        self.data = home / "data"
        (home / "breaking.py").write_text(BROKEN)
        self.steps = home / "steps"
        known = {**environment(), "HOLDFAST_SUPERVISOR": "on", steps.VARIABLE: str(self.steps)}
        given = f"--workers {count} --port 0 --data data"
        given += " --extension breaking:install --extension tests.chaos.steps:install"
        with (home / "stderr").open("w") as errors:
            self.process = subprocess.Popen(
                [*PROGRAM, "serve", *given.split(), *more],
                cwd=home,
                env=known,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert "is ready" in line, self.errors()
        self.url = line.split()[3].removesuffix("/cometd")

    def errors(self) -> str:
        return (self.home / "stderr").read_text()

    def lines(self) -> list[dict[str, Any]]:
        return [orjson.loads(line) for line in self.errors().splitlines() if line[0] == "{"]

    def workers(self) -> list[int]:
        """Their pids, which are children of importers."""
        return [*chain.from_iterable(self._families())]

    def are_complete(self) -> bool:
        """Return whether no worker is missing, and no former one is left."""
        return [len(each) for each in self._families() if each] == [self.count]

    def _families(self) -> list[list[int]]:
        return [children(importer) for importer in children(self.process.pid)]

    async def restart(self) -> dict[str, Any]:
        *_, end = await asyncio.to_thread(self._restart)
        return end

    def _restart(self) -> list[dict[str, Any]]:
        return [*ask(self.data / CONTROL_FILE, do=Do.RESTART, timeout=RESTART_S)]

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(LIMIT_S)

    def close(self) -> None:
        if self.process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        kill_orphans_in(self.home)


def children(pid: int) -> list[int]:
    """Return the children that run this program, and no store."""
    found = []
    with suppress(OSError):
        for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            with suppress(OSError):
                if b"serve" in Path(f"/proc/{each}/cmdline").read_bytes().split(b"\0"):
                    found.append(int(each))
    return found


class Member(Person):
    """Somebody with a named session, who collects what a room says."""

    def __init__(self, url: str, name: str, secure: ssl.SSLContext | None = None) -> None:
        super().__init__(url, secure)
        self.name = name
        # What it listens to.
        self.room = "/room"
        self.heard: list[int] = []
        self.ids: set[str] = set()
        self.handshakes = 0
        self._batch = 0
        self.task: asyncio.Task[None] | None = None

    async def join(self) -> None:
        await self.insist(self._enter)

    async def _enter(self) -> None:
        reply = await self.handshake(self.name)
        if not reply["successful"]:
            raise aiohttp.ClientError(str(reply))
        self.handshakes += 1
        [reply] = await self.ask("/meta/subscribe", subscription=self.room)
        if not reply["successful"]:
            raise aiohttp.ClientError(str(reply))
        self._batch = 0

    async def listen(self) -> None:
        while True:
            with suppress(aiohttp.ClientError, AssertionError, TimeoutError):
                async with asyncio.timeout(5):
                    await self._connect()

    async def _connect(self) -> None:
        messages = await self.connect(1000, ack=self._batch)
        reply = next(each for each in messages if each["channel"] == "/meta/connect")
        for each in messages:
            if each["channel"] == self.room:
                id = each["ext"]["delivery"]["id"]
                if id not in self.ids:
                    self.ids.add(id)
                    self.heard.append(each["data"])
        if reply["successful"]:
            self._batch = reply.get("ext", {}).get("ack", self._batch)
        elif reply.get("advice", {}).get("reconnect") == "handshake":
            await self._enter()
        else:
            await asyncio.sleep(0.02)

    async def insist(self, what: Callable[[], Awaitable[None]]) -> None:
        """Try again, as clients do, while the server is away."""
        async with asyncio.timeout(LIMIT_S):
            while True:
                try:
                    await what()
                except (aiohttp.ClientError, AssertionError):
                    await asyncio.sleep(0.02)
                else:
                    return


class Traffic:
    """Members of a room, and a publisher whose messages are numbered."""

    # Between two messages.
    pause_s = 0.01

    def __init__(self, members: list[Member], publisher: Member) -> None:
        self.members, self._publisher = members, publisher
        self.number = 0
        # Those that were accepted, and attempts that failed.
        self.accepted: list[int] = []
        self.failed: list[Any] = []

    async def publish(self) -> None:
        while True:
            self.number += 1
            try:
                replies = await self._publisher.ask(self._publisher.room, data=self.number)
            except (aiohttp.ClientError, AssertionError) as error:
                self.failed.append(repr(error))
                await asyncio.sleep(0.02)
                continue
            reply = next(each for each in replies if each["channel"] == self._publisher.room)
            if reply["successful"]:
                self.accepted.append(self.number)
            else:
                self.failed.append(reply.get("error"))
                if reply["error"].startswith("402"):
                    with suppress(aiohttp.ClientError, AssertionError):
                        await self._publisher.handshake()
            await asyncio.sleep(self.pause_s)

    async def flows(self, messages: int = 30) -> None:
        """Wait until so many more messages are accepted."""
        wanted = len(self.accepted) + messages
        await until(lambda: len(self.accepted) >= wanted)

    async def arrived(self) -> None:
        """Wait until everybody has heard everything that was accepted."""
        await have_heard(self.members, {*self.accepted})
        assert all(each.heard == sorted(each.heard) for each in self.members)


async def have_heard(members: Sequence[Member], accepted: set[int]) -> None:
    """Wait until everybody has heard these, and nothing twice."""
    with suppress(TimeoutError):
        await until(lambda: all(accepted <= {*each.heard} for each in members))
    for each in members:
        missing = accepted - {*each.heard}
        assert not missing, f"{each.name} misses {sorted(missing)}"
        assert len(each.heard) == len({*each.heard}), "twice, with different ids"


class Served(Protocol):
    """What clients find at a URL."""

    url: str


@asynccontextmanager
async def traffic(
    deployment: Served, secure: ssl.SSLContext | None = None
) -> AsyncIterator[Traffic]:
    async with AsyncExitStack() as stack:
        members = [Member(deployment.url, f"person{n}/1", secure) for n in range(PEOPLE + 1)]
        for each in members:
            stack.push_async_callback(each.http.close)
            await each.join()
        publisher = members.pop()
        found = Traffic(members, publisher)
        tasks = [asyncio.create_task(each.listen()) for each in members]
        publishing = asyncio.create_task(found.publish())
        try:
            await found.flows()
            yield found
            await found.flows()
            publishing.cancel()
            await asyncio.wait([publishing])
            await found.arrived()
        finally:
            for task in (publishing, *tasks):
                task.cancel()
            await asyncio.wait([publishing, *tasks])


@asynccontextmanager
async def deployed(home: Path, count: int, *more: str) -> AsyncIterator[Deployment]:
    found = Deployment(home, count, *more)
    try:
        yield found
        assert await asyncio.to_thread(found.stop) == 0, found.errors()
        assert "Traceback" not in found.errors(), found.errors()
        # However busy the machine is, no worker is killed because it had no processor.
        assert found.has_frozen or FROZEN not in found.errors(), found.errors()
    finally:
        found.close()


async def until(is_so: Callable[[], object], limit_s: float = LIMIT_S) -> None:
    """Wait for something that other processes do."""
    async with asyncio.timeout(limit_s):
        while not is_so():  # noqa: ASYNC110 - it is seen from outside alone
            await asyncio.sleep(0.02)


def ports_in_a_row(count: int) -> int:
    """The first of so many ports that are free now; other runs of tests look elsewhere."""
    begin = 20_000 + os.getpid() % 1_000 * 10
    for first in chain(range(begin, 30_000, count), range(20_000, begin, count)):
        with ExitStack() as stack:
            for port in range(first, first + count):
                taken = stack.enter_context(socket.socket())
                if taken.connect_ex(("127.0.0.1", port)) == 0:
                    break
            else:
                return first
    raise AssertionError("all ports are in use")


async def test_each_worker_has_a_port_of_its_own_also_after_a_restart(tmp_path: Path) -> None:
    first = ports_in_a_row(2)

    async def shards_of_newcomers() -> list[int]:
        found = []
        for port in (first, first + 1):
            async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as http:
                async with http.get("/cluster/map") as response:
                    ranges = (await response.json())["ranges"]
                async with http.post("/cometd", json=HANDSHAKE) as response:
                    bucket = int((await response.json())[0]["clientId"][:3])
            found += [shard for low, high, shard in ranges if low <= bucket <= high]
        return found

    async with deployed(tmp_path, 2, "--own-port", str(first)) as deployment:
        assert await shards_of_newcomers() == [0, 1]
        assert await deployment.restart() == {"done": True}
        assert await shards_of_newcomers() == [0, 1]


async def test_a_killed_worker_is_replaced_and_its_sessions_lose_nothing(tmp_path: Path) -> None:
    count = 3
    async with deployed(tmp_path, count) as deployment, traffic(deployment) as flowing:
        for number in range(count):
            before = deployment.workers()
            os.kill(before[number % len(before)], signal.SIGKILL)
            await until(deployment.are_complete)
            await until(lambda: set(deployment.workers()) - set(before))  # noqa: B023
            await flowing.flows()
        ended = [each for each in deployment.lines() if "has ended (signal 9)" in each["message"]]
        assert len(ended) == count


async def test_a_restart_replaces_all_workers_under_traffic(tmp_path: Path) -> None:
    count = 3
    async with deployed(tmp_path, count) as deployment, traffic(deployment) as flowing:
        before = deployment.workers()
        assert len(before) == count
        assert await deployment.restart() == {"done": True}
        await until(deployment.are_complete)
        assert not {*before} & {*deployment.workers()}
        await flowing.flows()
        assert [each.handshakes for each in flowing.members] == PEOPLE * [1]
    assert flowing.failed == []
    assert not [each for each in deployment.lines() if each["level"] == "error"]
    # The supervisor has none.
    assert {each.get("shard") for each in deployment.lines()} == {None, *range(count)}


async def test_a_restart_that_fails_leaves_all_old_workers(tmp_path: Path) -> None:
    async with deployed(tmp_path, 2) as deployment, traffic(deployment) as flowing:
        before = deployment.workers()
        (tmp_path / "broken").touch()
        end = await deployment.restart()
        assert "the test wants it" in end["failed"]
        assert end["serving"] is True
        assert deployment.workers() == before
        await flowing.flows()
        assert flowing.failed == []


def is_past(folder: Path, step: str) -> bool:
    return not steps.is_armed(folder, step)


# A short run has every other one.
FORMER = ("given complete", "told to leave", "half handed over", "left")
SUCCESSOR = ("told to open", "prepared", "loaded", "given removed", "listening", "ready")


@pytest.mark.timeout(400)  # several restarts
@pytest.mark.parametrize("killed_at", [FORMER, SUCCESSOR], ids=["former", "successor"])
async def test_workers_that_are_killed_in_restarts_lose_nothing(
    pytestconfig: pytest.Config, tmp_path: Path, killed_at: tuple[str, ...]
) -> None:
    killed_at = killed_at if pytestconfig.getoption("--every-step") else killed_at[::2]
    async with deployed(tmp_path, 2) as deployment, traffic(deployment) as flowing:
        for step in killed_at:
            before = deployment.workers()
            steps.arm(deployment.steps, step, signal.SIGKILL)
            end = await deployment.restart()
            await until(partial(is_past, deployment.steps, step))
            await until(deployment.are_complete)
            await flowing.flows()
            after = {*deployment.workers()}
            # All are of the old code, or of the new.
            stayed = 1 if step in steps.OF_FORMER else 2
            assert len(after & {*before}) == (0 if "done" in end else stayed), step


async def ready(url: str) -> str:
    async with aiohttp.ClientSession(url) as http, http.get("/readyz") as response:
        return f"{response.status} {(await response.text()).strip()}"


async def raised_alerts(url: str) -> set[str]:
    async with aiohttp.ClientSession(url) as http, http.get("/metrics") as response:
        lines = (await response.text()).splitlines()
    raised = [each for each in lines if each.startswith("holdfast_alert_raised{")]
    return {re.findall(r'alert="(\w+)"', each)[0] for each in raised if each.endswith(" 1.0")}


async def test_a_worker_that_ends_again_and_again_is_an_alert_and_the_others_stay_ready(
    tmp_path: Path,
) -> None:
    first = ports_in_a_row(2)
    url = f"http://127.0.0.1:{first + 1}"
    async with deployed(tmp_path, 2, "--own-port", str(first)) as deployment:
        assert await ready(url) == "200 ready"
        (tmp_path / "broken").touch()
        before = deployment.workers()
        os.kill(before[0], signal.SIGKILL)
        async with asyncio.timeout(LIMIT_S):
            while "shards" not in await raised_alerts(url):
                assert await ready(url) == "200 ready"
                await asyncio.sleep(0.1)
        assert await raised_alerts(url) == {"shards"}
        assert before[1] in deployment.workers()
        (tmp_path / "broken").unlink()
        await until(deployment.are_complete)
