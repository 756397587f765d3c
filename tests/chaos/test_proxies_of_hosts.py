"""HAProxy, nginx and Caddy before three hosts, as `deploy` has it: with stickiness and without.

-s shows how many requests went to another host than the one with their session.
"""

import asyncio
import re
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import aiohttp
import pytest

from tests.chaos.doors import Door, program, settings_of
from tests.chaos.hosts import NAMES, SHARDS, Host, Hosts, three_hosts, until
from tests.chaos.test_hosts import TOKEN, drained, uncordoned
from tests.chaos.test_workers import Member
from tests.chaos.twin import LIMIT_S

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PEOPLE = 9
ROUNDS = 20
# For so long, proxies may not have noticed what happened to a host.
NOTICED_S = 3.0
# A machine with much else to do is slow to answer health checks, and may move a shard.
TRIES = 3
# The lines that make a proxy sticky.
STICKY: Final = {
    "haproxy": re.compile(r"^    cookie HOLDFAST_HOST\n", re.MULTILINE),
    "nginx": re.compile(r"^    \S+ +holdfast_[abc];\n", re.MULTILINE),
    "caddy": re.compile(r"^\t\t(@[abc] .*|reverse_proxy @(?s:.*?)\n\t\t})\n", re.MULTILINE),
}
COOKIE = "HOLDFAST_HOST"
_FORWARDED = re.compile(
    r'^holdfast_requests_forwarded_total{shard="(\d+)",to="(\d+)"} (\S+)', re.MULTILINE
)
_HOST = re.compile(r'^holdfast_shard_host{shard="(\d+)",host="(\S+)"} 1', re.MULTILINE)


class Crowd:
    """Clients with named sessions behind a proxy."""

    def __init__(self, kind: str, is_sticky: bool, door: Door) -> None:
        self.kind, self.is_sticky = kind, is_sticky
        self.name = f"{kind}, {'sticky' if is_sticky else 'plain'}"
        prefix = f"{kind}{int(is_sticky)}"
        self.people = [Member(door.url, f"{prefix}-{number}/1") for number in range(PEOPLE)]

    async def publish(self) -> Counter[str]:
        """Let each publish several times, one after the other; return what failed."""
        found = await asyncio.gather(*map(_publish, self.people))
        return sum(found, Counter())

    async def goes_on(self) -> None:
        """Wait until everybody has published something in their session."""
        for each in self.people:
            await each.insist(lambda each=each: _publish_once(each))  # type: ignore[misc]

    @property
    def hosts(self) -> list[str]:
        """Which host each client was told."""
        jars = [each.http.cookie_jar for each in self.people]
        return [next(c.value for c in jar if c.key == COOKIE) for jar in jars]


async def _publish_once(person: Member) -> None:
    reply = await person.reply("/somewhere", data="something")
    assert reply["successful"], reply


async def _publish(person: Member) -> Counter[str]:
    failures: Counter[str] = Counter()
    for _ in range(ROUNDS):
        try:
            await _publish_once(person)
        except (aiohttp.ClientError, AssertionError) as error:
            failures[repr(error)] += 1
    return failures


class Crossings(dict[tuple[str, str], int]):
    """By shards, how many requests have gone to another host, because that has their session."""

    def since(self, before: "Crossings") -> int | None:
        """Return how many there were since then; None if a shard has got another process."""
        counts = [count - before.get(pair, 0) for pair, count in self.items()]
        is_same = self.keys() == before.keys() and min(counts, default=0) >= 0
        return sum(counts) if is_same else None


async def crossings(host: Host) -> Crossings:
    """Read them on the page that any host shows of all."""
    async with asyncio.timeout(LIMIT_S), aiohttp.ClientSession() as http:
        page, hosts = "", dict[str, str]()
        # A shard that is slow to answer is not on the page.
        while len(hosts) < SHARDS:
            async with http.get(f"{host.url}/metrics") as response:
                page = await response.text()
            hosts = dict(_HOST.findall(page))
    return Crossings(
        {
            (shard, to): int(float(count))
            for shard, to, count in _FORWARDED.findall(page)
            if hosts[shard] != hosts[to]
        }
    )


@asynccontextmanager
async def crowds(home: Path, hosts: Hosts) -> AsyncIterator[list[Crowd]]:
    """Run each proxy twice: with stickiness, and without."""
    places = {}
    for letter, name, host in zip("abc", NAMES, hosts.all, strict=True):
        places[f"{letter}.example:8080"] = str(host.address)
        places[f"{letter}.example"] = name
        places[rf"{letter}\.example"] = re.escape(name)
    async with AsyncExitStack() as stack:
        found = []
        for kind, sticky in STICKY.items():
            for is_sticky in (True, False):
                settings = settings_of(kind, "many-machines", places)
                if not is_sticky:
                    settings, count = sticky.subn("", settings)
                    assert count
                own = home / f"{kind}-{int(is_sticky)}"
                own.mkdir()
                door = await stack.enter_async_context(program(kind, own, settings))
                crowd = Crowd(kind, is_sticky, door)
                for each in crowd.people:
                    stack.push_async_callback(each.http.close)
                found.append(crowd)
        yield found


async def rounds(crowds: Sequence[Crowd], ask: Host, what: str) -> None:
    """Let clients publish: nothing fails, and sticky proxies find the right host."""
    for each in crowds:
        count: int | None = None
        failed = Counter({"not tried": 1})
        for _ in range(TRIES):
            # A session that has moved is told where it is now.
            await each.goes_on()
            before = await crossings(ask)
            failed = await each.publish()
            count = (await crossings(ask)).since(before)
            if count is not None and not failed:
                break
        assert not failed, what
        assert count is not None
        sys.stdout.write(f"\n{what}: {each.name}: {count} of {PEOPLE * ROUNDS} requests crossed\n")
        sys.stdout.flush()
        assert count == 0 if each.is_sticky else count > PEOPLE * ROUNDS / 6, what


async def test_proxies_lead_clients_to_their_sessions_and_leave_hosts_that_do_not_serve(
    tmp_path: Path,
) -> None:
    async with (
        three_hosts(tmp_path, max_sessions_per_browser=-1) as (hosts, _),
        crowds(tmp_path, hosts) as all_crowds,
    ):
        first, second, third = hosts.all
        for crowd in all_crowds:
            for each in crowd.people:
                await each.join()
        await rounds(all_crowds, third, "all serve")
        assert {host for crowd in all_crowds for host in crowd.hosts} == {*NAMES}
        # Its own token opens the others, too.
        done = await asyncio.to_thread(drained, NAMES[0], by=third, token=first.data / TOKEN)
        assert done.returncode == 0, done.stderr
        await asyncio.sleep(NOTICED_S)
        await rounds(all_crowds, third, "one is drained")
        assert NAMES[0] not in {host for crowd in all_crowds for host in crowd.hosts}
        done = await asyncio.to_thread(uncordoned, NAMES[0], by=third, token=first.data / TOKEN)
        assert done.returncode == 0, done.stderr
        await asyncio.sleep(NOTICED_S)
        await second.kill_all()
        await asyncio.gather(*[each.goes_on() for each in all_crowds])
        await until(hosts.have_all_shards)
        await asyncio.sleep(NOTICED_S)
        await rounds(all_crowds, third, "one is dead")
        everybody = [each for crowd in all_crowds for each in crowd.people]
        assert {each.handshakes for each in everybody} == {1}
