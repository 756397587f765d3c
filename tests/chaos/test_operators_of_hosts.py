"""Operators of three hosts: whichever they ask, holds, replays and the audit are those of all."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.chaos.hosts import Host, Hosts, three_hosts, until
from tests.chaos.test_workers import Member
from tests.chaos.twin import LIMIT_S

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PEOPLE, LETTERS = 6, 8


class Operator:
    """Asks the administration of one host, and again while that is impossible."""

    def __init__(self, host: Host, http: aiohttp.ClientSession) -> None:
        self.host, self._http = host, http

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        token = (self.host.data / "admin-token").read_text().strip()
        url, headers = f"{self.host.url}/admin/api/v1{path}", {"Authorization": f"Bearer {token}"}
        async with asyncio.timeout(LIMIT_S):
            while True:
                async with self._http.request(method, url, json=body, headers=headers) as response:
                    if response.status < 300:
                        return await response.json() if response.content_length else None
                    said = await response.text()
                assert response.status == 503, said
                await asyncio.sleep(0.5)

    async def shard_of(self, name: str) -> int:
        return int((await self.ask("GET", f"/sessions/{name}"))["shard"])

    async def publish(self, to: str, number: int) -> None:
        message = {
            "channel": "/room",
            "data": number,
            "ext": {"delivery": {"destinations": [to], "persistent": True}},
        }
        async with self._http.post(f"{self.host.url}/publish", json=message) as response:
            [found] = await response.json()
        assert found["successful"], found

    async def has_letters(self, count: int) -> None:
        """Wait until all shards answer, and have so many dead letters together."""
        async with asyncio.timeout(LIMIT_S):
            page = await self.ask("GET", "/dead-letters")
            while page["unanswered"] or len(page["items"]) != count:
                await asyncio.sleep(0.5)
                page = await self.ask("GET", "/dead-letters")

    async def actions(self) -> list[tuple[str, str]]:
        """What operators did, the latest first, as soon as all shards answer in time."""
        page = await self.ask("GET", "/audit")
        while page["unanswered"]:
            await asyncio.sleep(0.5)
            page = await self.ask("GET", "/audit")
        found = page["items"]
        return [(each["action"], each["target"]) for each in found]


async def crowd(urls: Sequence[str], stack: AsyncExitStack) -> list[Member]:
    people = [Member(urls[n % 3], f"person{n}/1") for n in range(PEOPLE)]
    for each in people:
        stack.push_async_callback(each.http.close)
        await each.join()
    return people


def elsewhere(hosts: Hosts, operators: Sequence[Operator], shard: int) -> Operator:
    """The operator at a host that does not have a shard."""
    owner = hosts.owner_of(shard)
    return next(each for each in operators if each.host is not owner)


async def test_holds_replays_and_the_audit_are_those_of_all_hosts(tmp_path: Path) -> None:
    async with (
        three_hosts(tmp_path, max_sessions_per_browser=-1) as (hosts, ways),
        AsyncExitStack() as stack,
    ):
        http = await stack.enter_async_context(aiohttp.ClientSession())
        operators = [Operator(each, http) for each in hosts.all]
        held, receiver, *_ = await crowd(ways.urls, stack)
        shard = await operators[0].shard_of(held.name)
        asked = elsewhere(hosts, operators, shard)
        await asked.ask("PUT", f"/sessions/{held.name}/hold", {"reason": "a test"})
        for number in range(LETTERS):
            await asked.publish(held.name, number)
        # The session goes on at another host, and is held there, too.
        owner = hosts.owner_of(shard)
        await owner.kill_all()
        others = [each for each in operators if each.host is not owner]
        for each in others:
            found = await each.ask("GET", f"/sessions/{held.name}")
            assert (found["hold"]["reason"], found["waiting"]) == ("a test", LETTERS)
        owner.begin()
        await owner.serves(LIMIT_S)
        await until(hosts.have_all_shards)
        await asked.ask("DELETE", f"/sessions/{held.name}")
        for each in operators:
            await each.has_letters(LETTERS)
        # The replay goes on while the host dies that has the letters.
        first = elsewhere(hosts, operators, shard)
        options = {"to": receiver.name, "rate": 1}
        wanted = {"all": True, "dry_run": False, "filter": {}, "options": options}
        id = (await first.ask("POST", "/replays", wanted))["id"]
        listening = asyncio.create_task(receiver.listen())
        await until(lambda: receiver.heard)
        owner = hosts.owner_of(shard)
        assert owner is not first.host
        await owner.kill_all()
        await until(lambda: len(receiver.heard) == LETTERS)
        listening.cancel()
        await asyncio.wait([listening])
        assert sorted(receiver.heard) == [*range(LETTERS)]
        owner.begin()
        await owner.serves(LIMIT_S)
        async with asyncio.timeout(LIMIT_S):
            while (await first.ask("GET", f"/replays/{id}"))["state"] != "done":  # noqa: ASYNC110
                await asyncio.sleep(0.5)
        seen = [await each.actions() for each in operators]
        async with asyncio.timeout(LIMIT_S):
            # What is done does not wait until it is in the audit.
            while ("replay.done", id) not in seen[0] or not seen[0] == seen[1] == seen[2]:
                await asyncio.sleep(0.5)
                seen = [await each.actions() for each in operators]
        assert [each for each in reversed(seen[0]) if each[0] != "replay.done"] == [
            ("session.hold", held.name),
            ("session.end", held.name),
            ("replay.start", id),
        ]
