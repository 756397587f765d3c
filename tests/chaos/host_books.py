"""The accounts of all shards, as any host shows them: no entry is missing, and none is double."""

import asyncio
import re
import sys
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

import aiohttp

from tests.chaos.hosts import SHARDS, Host
from tests.chaos.twin import LIMIT_S

_ENTRIES = re.compile(r'^holdfast_entries_([a-z_]+){shard="(\d+)"[^}]*} (\S+)', re.MULTILINE)
_CAME = ("accepted_total", "restored_total", "borrowed")
_LEFT_OR_THERE = ("settled_total", "waiting", "in_flight")
_LOOK_S = 0.2

Books = Mapping[int, Mapping[str, float]]


def read(page: str) -> Books:
    """Return the entries of each shard by what has become of them."""
    found: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for name, shard, count in _ENTRIES.findall(page):
        found[int(shard)][name] += float(count)
    return found


def faults(books: Books, shards: Collection[int] = range(SHARDS)) -> list[str]:
    """Say of which shards the books are missing, or do not balance."""
    said = [f"shard {each} shows no books" for each in shards if each not in books]
    for shard, counts in books.items():
        came, is_known = (
            sum(counts.get(each, 0.0) for each in names) for names in (_CAME, _LEFT_OR_THERE)
        )
        if came != is_known:
            said.append(f"shard {shard}: {came:.0f} entries came, {is_known:.0f} are known")
    return said


async def close_books(hosts: Sequence[Host], names: Collection[str]) -> None:
    """Wait until all books balance, and nothing is left of what these sessions have heard."""
    said = ["no host has answered"]
    with suppress(TimeoutError):
        async with asyncio.timeout(LIMIT_S), aiohttp.ClientSession() as http:
            while said:
                with suppress(aiohttp.ClientError, KeyError):
                    said = await _faults_seen_by(http, hosts, names)
                await asyncio.sleep(_LOOK_S)
    assert not said, said
    sys.stdout.write("\nthe books of all shards balance, and nobody has anything left\n")


async def _faults_seen_by(
    http: aiohttp.ClientSession, hosts: Sequence[Host], names: Collection[str]
) -> list[str]:
    """Return what any of the hosts that live says."""
    host = next(each for each in hosts if each.is_running)
    async with http.get(f"{host.url}/metrics") as response:
        said = faults(read(await response.text()))
    token = (host.data / "admin-token").read_text().strip()
    headers = {"Authorization": f"Bearer {token}"}
    for name in names:
        path = f"{host.url}/admin/api/v1/sessions/{name}"
        async with http.get(path, headers=headers) as response:
            found = await response.json()
        if left := found["waiting"] + found["in_flight"]:
            said.append(f"{left} entries are left for {name}")
    return said
