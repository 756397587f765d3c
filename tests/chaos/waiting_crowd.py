"""`python -m tests.chaos.waiting_crowd`: how long a crowd waits whose host has been killed.

All have names and messages that wait. They ask at the doors that live, again and again.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from itertools import cycle
from pathlib import Path
from random import random
from statistics import median
from typing import Any

import aiohttp

from tests.chaos.hosts import three_hosts
from tests.web.people import Person

_ROOM = "/room"
# As long as stock clients let pass before they ask again.
_AGAIN_S = 1.0
_ANSWER_S = 10.0
_LIMIT_S = 300.0
# At a time.
_MOST_JOINING = 20


class Member(Person):
    """Somebody with messages that wait, and when they came."""

    def __init__(self, url: str, name: str) -> None:
        super().__init__(url)
        self.name = name
        self.shard = -1
        self.heard: list[int] = []
        self._batch = -1
        # After how long it was answered first, had its first message, and had all.
        self.answered_s = self.first_s = self.all_s = 0.0

    async def join(self) -> None:
        reply = await self.handshake(self.name)
        assert reply["successful"], reply
        reply = await self.reply("/meta/subscribe", subscription=_ROOM)
        assert reply["successful"], reply
        await self.connect()

    async def insist_on_joining(self) -> None:
        """Try again, as clients do, while a busy server refuses."""
        async with asyncio.timeout(_LIMIT_S):
            while True:
                try:
                    await self.join()
                except (aiohttp.ClientError, AssertionError):
                    await asyncio.sleep(_AGAIN_S)
                else:
                    return

    async def hear_all(self, urls: Sequence[str], count: int, began: float) -> None:
        """Ask at one door after the other until all messages are there."""
        doors = cycle(urls if len(self.name) % 2 else reversed(urls))
        await asyncio.sleep(_AGAIN_S * random())
        while len(self.heard) < count:
            assert time.monotonic() - began < _LIMIT_S, f"{self.name} is not answered"
            before = len(self.heard)
            with suppress(aiohttp.ClientError, TimeoutError):
                await self._ask_at(next(doors), began)
            if len(self.heard) == before:
                await asyncio.sleep(_AGAIN_S)
        self.all_s = time.monotonic() - began

    async def _ask_at(self, url: str, began: float) -> None:
        message = {
            "channel": "/meta/connect",
            "clientId": self.client_id,
            "connectionType": "long-polling",
            "advice": {"timeout": 0},
            "ext": {"ack": self._batch},
        }
        timeout = aiohttp.ClientTimeout(total=_ANSWER_S)
        async with self.http.post(f"{url}/cometd", json=[message], timeout=timeout) as response:
            messages: list[dict[str, Any]] = await response.json() if response.status == 200 else []
        if not messages or not messages[-1]["successful"]:
            return
        now_s = time.monotonic() - began
        self.answered_s = self.answered_s or now_s
        found = [each["data"] for each in messages if each["channel"] == _ROOM]
        self.first_s = self.first_s or (now_s if found else 0.0)
        self.heard += [each for each in found if each not in self.heard]
        # A connect that another one of the same client has replaced is answered without a batch.
        self._batch = messages[-1].get("ext", {}).get("ack", self._batch)


async def measure(home: Path, sessions: int, waiting: int, round_trip_s: float) -> str:
    """Return how long all waited, as a table."""
    settings: dict[str, Any] = {"max_sessions_per_browser": -1, "max_queue": 10 * waiting + 1000}
    async with AsyncExitStack() as stack:
        hosts, _ = await stack.enter_async_context(
            three_hosts(home, max_interval=600_000, **settings)
        )
        doors = cycle(each.url for each in hosts.all)
        members = [Member(next(doors), f"person{number}/1") for number in range(sessions)]
        for each in members:
            stack.push_async_callback(each.http.close)
        turn = asyncio.Semaphore(_MOST_JOINING)

        async def join(member: Member) -> None:
            async with turn:
                await member.insist_on_joining()

        await asyncio.gather(*map(join, members))
        shards = await shards_of([each.client_id for each in members], hosts.all[0].url)
        for each, shard in zip(members, shards, strict=True):
            each.shard = shard
        await _publish(hosts.all[0].url, waiting)
        dies, *living = sorted(hosts.all, key=lambda each: -len(each.shards))
        for host in hosts.all:
            host.slow_down(round_trip_s / 2)
        lost, load = {*dies.shards}, os.getloadavg()[0]
        await dies.kill_all()
        began, urls = time.monotonic(), [each.url for each in living]
        await asyncio.gather(*(each.hear_all(urls, waiting, began) for each in members))
        orphans = [each for each in members if each.shard in lost]
        rows = [
            _row("answered", [each.answered_s for each in orphans]),
            _row("first message", [each.first_s for each in orphans]),
            _row("all messages", [each.all_s for each in orphans]),
        ]
        wrong = [each.name for each in members if each.heard != [*range(waiting)]]
        about = f"{len(orphans)} of {sessions} sessions were on the host that died, load {load:.0f}"
        return "\n".join([about, *rows, f"out of order: {wrong or 'none'}"])


async def shards_of(client_ids: Sequence[str], url: str) -> list[int]:
    """Return the shards that have these sessions."""
    async with aiohttp.ClientSession(url) as http, http.get("/cluster/map") as response:
        ranges = (await response.json())["ranges"]
    buckets = [int(each[:3]) for each in client_ids]
    return [next(shard for low, high, shard in ranges if low <= at <= high) for at in buckets]


async def _publish(url: str, count: int) -> None:
    async with aiohttp.ClientSession(url) as http:
        for number in range(count):
            message = {"channel": _ROOM, "data": number}
            async with http.post("/publish", json=message) as response:
                replies = await response.json()
            assert replies[0]["successful"], replies


def _row(what: str, times: Sequence[float]) -> str:
    first, last = min(times), max(times)
    return f"{what:14} first {first:.1f} s, median {median(times):.1f} s, last {last:.1f} s"


def main() -> None:
    name = "python -m tests.chaos.waiting_crowd"
    parser = argparse.ArgumentParser(prog=name, description=__doc__)
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--waiting", type=int, default=10, help="messages of each session")
    parser.add_argument(
        "--round-trip", type=float, default=0.0, help="seconds, between hosts and to the store"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="holdfast-crowd-") as home:
        found = asyncio.run(measure(Path(home), given.sessions, given.waiting, given.round_trip))
    sys.stdout.write(f"{found}\n")


if __name__ == "__main__":
    main()
