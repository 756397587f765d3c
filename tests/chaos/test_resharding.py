"""Several workers become more and fewer: named sessions go on, and find each message once."""

import asyncio
import json
import os
import signal
import subprocess
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.test_workers import LIMIT_S, Deployment
from tests.serving import PROGRAM, environment, kill_orphans_in
from tests.web.people import Person

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]  # starts several processes

NAMES = [f"person{number}/1" for number in range(8)]


def run(home: Path, *words: str) -> Any:
    """What the command says in JSON."""
    done = subprocess.run(
        [*PROGRAM, "reshard", "--data", "data", "--json", *words],
        cwd=home,
        env={**environment(), "HOLDFAST_CHAT": "off"},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Crowd:
    """Named sessions, and all that each has heard: ids with data."""

    def __init__(self) -> None:
        self.heard: dict[str, list[tuple[str, int]]] = {name: [] for name in NAMES}
        self.accepted: list[int] = []
        self._number = 0

    async def visit(self, url: str, *, is_first: bool, count: int, leaves: bool) -> None:
        """Everybody comes and hears what waits; then messages are published."""
        async with AsyncExitStack() as stack:
            people = {}
            for name in NAMES:
                people[name] = person = Person(url)
                stack.push_async_callback(person.http.close)
                assert (await person.handshake(name))["successful"]
                if is_first:
                    [reply] = await person.ask("/meta/subscribe", subscription="/room")
                    assert reply["successful"]
            writers = [Person(url) for _ in range(2)]
            for each in writers:
                stack.push_async_callback(each.http.close)
                await each.handshake()
            if not is_first:
                await self.hear(people)
            for number in range(count):
                self._number += 1
                reply = await writers[number % 2].reply("/room", data=self._number)
                if reply["successful"]:
                    self.accepted.append(self._number)
            if not leaves:
                await self.hear(people)

    async def hear(self, people: dict[str, Person]) -> None:
        """Hear everything that was accepted so far, and acknowledge it."""

        async def listen(name: str) -> None:
            batch = 0
            wanted = {*self.accepted}
            async with asyncio.timeout(LIMIT_S):
                while not wanted <= {data for _, data in self.heard[name]}:
                    batch = await self._connect(people[name], name, batch)
                await self._connect(people[name], name, batch)

        await asyncio.gather(*map(listen, NAMES))

    async def _connect(self, person: Person, name: str, batch: int) -> int:
        replies = await person.connect(100, ack=batch)
        for each in replies:
            if each["channel"] == "/room":
                self.heard[name].append((each["ext"]["delivery"]["id"], each["data"]))
        return int(replies[-1].get("ext", {}).get("ack", batch))

    def check(self) -> None:
        for name, heard in self.heard.items():
            assert [data for _, data in heard] == self.accepted, name
            assert len({id for id, _ in heard}) == len(heard)


@pytest.mark.parametrize("is_killed", [False, True])
async def test_named_sessions_go_on_among_more_and_fewer_workers(
    tmp_path: Path, is_killed: bool
) -> None:
    crowd = Crowd()
    try:
        for place, count in enumerate([2, 3, 1]):
            if place:
                report = await asyncio.to_thread(run, tmp_path, "--shards", str(count))
                assert report["moved"]
                got = [each["sessions"] for each in report["shards"][:count]]
                assert sum(got) == len(NAMES)
                # One of three may have none.
                assert len([each for each in got if each]) >= min(count, 2)
            deployment = Deployment(tmp_path, count)
            try:
                await crowd.visit(deployment.url, is_first=place == 0, count=30, leaves=count != 1)
                if is_killed:
                    with suppress(ProcessLookupError):
                        os.killpg(deployment.process.pid, signal.SIGKILL)
                else:
                    assert await asyncio.to_thread(deployment.stop) == 0, deployment.errors()
            finally:
                if deployment.process.poll() is None:
                    with suppress(ProcessLookupError):
                        os.killpg(deployment.process.pid, signal.SIGKILL)
                    deployment.process.wait()
                assert deployment.process.stdout is not None
                deployment.process.stdout.close()
        crowd.check()
    finally:
        kill_orphans_in(tmp_path)
