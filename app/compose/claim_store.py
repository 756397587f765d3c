"""What a host reads in the stores of all shards, and writes for the other hosts."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.hosts.rows import HostRow, HostRows, pack
from holdfast.hosts.watching import ShardSeen
from holdfast.settings.host_list import HostList
from holdfast.store.format.keys import RedisKeys
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.links.primary import Primary
from holdfast.store.links.reader import Reader
from holdfast.store.links.url import Kind, StoreUrl

if TYPE_CHECKING:
    from holdfast.settings import Settings

# A store that answers later may have been replaced.
_LIMIT_S = 0.4
# For how long a host is drained, unless an operator ends it before: one that was to be updated, and
# still runs, has shards again.
DRAIN_MS = 600_000
_NAMES = ("epoch", "lease", "host", "offer")
Seen = Mapping[int, ShardSeen | None]


class ClaimStore:
    """Reads the leases of all shards, and the rows of all hosts.

    Of a cluster, each shard may be at another server.
    """

    def __init__(self, settings: "Settings", shards: int) -> None:
        url = StoreUrl.of(settings.redis or "")
        keys = [RedisKeys(settings.namespace, shard) for shard in range(shards)]
        self._own = settings.own_host or ""
        self._metas = [each.meta for each in keys]
        self._hosts = keys[0].hosts
        self._drained = keys[0].drained
        is_cluster = url.kind is Kind.CLUSTER
        readers = [Reader(Primary(url, meta)) for meta in self._metas[: None if is_cluster else 1]]
        self._readers = readers if is_cluster else readers * shards
        self._first = readers[0]
        # By reader, the connection that has answered last.
        self._answered: dict[Reader, object] = {}
        self._rows = HostRows(HostList.parse(settings.hosts).names)

    async def read(self) -> tuple[Seen, Mapping[str, HostRow] | None]:
        """Return who has each shard, and the rows of hosts; None for what cannot be read now.

        What another connection answers than the last time does not count yet: it may be another
        server, which lacks something.
        """
        rows, *seen = await asyncio.gather(
            self._ask(self._first, "HGETALL", self._hosts),
            *(
                self._ask(reader, "HMGET", meta, *_NAMES)
                for reader, meta in zip(self._readers, self._metas, strict=True)
            ),
        )
        is_new = {each for each in {*self._readers} if self._is_new(each)}
        shards = {
            shard: None if reply is None or reader in is_new else ShardSeen(*map(_text, reply))
            for shard, (reader, reply) in enumerate(zip(self._readers, seen, strict=True))
        }
        if rows is None or self._first in is_new:
            return shards, None
        return shards, self._rows.read(rows)

    async def _ask(self, reader: Reader, *command: str) -> Any:  # noqa: ANN401 - whatever it answers
        try:
            # Finding another primary takes longer, and must not be interrupted.
            async with asyncio.timeout(_LIMIT_S if reader.is_connected else None):
                return await reader.ask(*command)
        except (StoreUnavailable, TimeoutError):
            return None

    def _is_new(self, reader: Reader) -> bool:
        former, self._answered[reader] = self._answered.get(reader), reader.connection
        return former is not reader.connection

    async def host_of(self, shard: int) -> str | None:
        """Return the name of the host that has a shard, or had it last; None if nobody knows."""
        found = await self._ask(self._readers[shard], "HMGET", self._metas[shard], "host")
        return _text(found[0]) or None if found else None

    async def is_to_drain(self) -> bool | None:
        """Return whether operators want this host to have no shards; None if that is unknown."""
        found = await self._ask(self._first, "EXISTS", self._drained(self._own))
        return None if found is None else bool(found)

    async def wishes(self, hosts: Sequence[str]) -> Sequence[bytes | None]:
        """Return the wish that each of these hosts is drained. Raises `StoreUnavailable`."""
        found: Sequence[bytes | None] = await self._first.ask("MGET", *map(self._drained, hosts))
        return found

    async def wish_drained(self, host: str, wish: bytes) -> None:
        """Let a host be drained for some minutes. Raises `StoreUnavailable`."""
        await self._first.ask("SET", self._drained(host), wish, "PX", str(DRAIN_MS))

    async def end_wish(self, host: str) -> None:
        """Let a host have shards again. Raises `StoreUnavailable`."""
        await self._first.ask("DEL", self._drained(host))

    async def write(self, row: HostRow) -> None:
        """Write the row of this host. Raises `StoreUnavailable`."""
        await self._first.ask("HSET", self._hosts, self._own, pack(row))

    async def remove(self) -> None:
        """Remove the row of this host. Raises `StoreUnavailable`."""
        await self._first.ask("HDEL", self._hosts, self._own)

    def close(self) -> None:
        """Close the connections."""
        for each in {*self._readers}:
            each.close()


def _text(value: bytes | None) -> str:
    return (value or b"").decode()
