"""What a host reads in the stores of all shards, and writes for the other hosts."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.hosts.existing import record_of, recorded_in
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
# Stand for the rows, and the wish that this host is drained, among the numbers of shards.
_ROWS = -1
_WISH = -2
_NAMES = ("epoch", "lease", "host", "offer", "node", "deployment")
# Before the names of files with tokens. No host has such a name.
_OF_TOKENS = "/"
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
        # What each is asked in a look, together: a store that is far away takes long for each time.
        self._commands: dict[Reader, dict[int, Sequence[str]]] = {each: {} for each in readers}
        for shard, (reader, meta) in enumerate(zip(self._readers, self._metas, strict=True)):
            self._commands[reader][shard] = ("HMGET", meta, *_NAMES)
        of_hosts = {_ROWS: ("HGETALL", self._hosts), _WISH: ("EXISTS", self._drained(self._own))}
        self._commands[self._first] |= of_hosts
        # The connections that have answered last.
        self._connections: dict[Reader, object] = {}
        # What is under way, or has been answered since the last look.
        self._asked: dict[Reader, asyncio.Task[Sequence[Any] | None]] = {}
        # The operators' tokens as of the last look, by the names of their files.
        self.tokens: dict[str, bytes] = {}
        # The shards that were opened once, as far as the rows say it.
        self.recorded: set[int] = set()
        # Whether operators want this host to have no shards, as of the last look; None: unknown.
        self.is_to_drain: bool | None = None
        self._rows = HostRows(HostList.parse(settings.hosts).names)

    async def read(self) -> tuple[Seen, Mapping[str, HostRow] | None]:
        """Return who has each shard, and the rows of hosts; None for what cannot be read now.

        What has not answered yet is left out, and belongs to the look in which it does. What
        another connection answers than the last time does not count yet: it may be another server,
        which lacks something.
        """
        for reader, commands in self._commands.items():
            if reader not in self._asked:
                self._asked[reader] = asyncio.create_task(_ask_all(reader, commands.values()))
        await asyncio.wait(self._asked.values(), timeout=_LIMIT_S)
        found: dict[int, Any] = {}
        for reader in [each for each, task in self._asked.items() if task.done()]:
            answers = self._asked.pop(reader).result()
            if self._is_new(reader) or answers is None:
                answers = [None] * len(self._commands[reader])
            found |= zip(self._commands[reader], answers, strict=True)
        rows, wish = found.pop(_ROWS, None), found.pop(_WISH, None)
        self.is_to_drain = None if wish is None else bool(wish)
        shards = {
            shard: None if reply is None else ShardSeen(*map(_text, reply))
            for shard, reply in found.items()
        }
        return shards, None if rows is None else self._rows_in(rows)

    def _rows_in(self, found: Mapping[bytes, bytes]) -> Mapping[str, HostRow]:
        marked = {key.decode("utf-8", "replace"): text for key, text in found.items()}
        self.tokens = {
            name.removeprefix(_OF_TOKENS): text
            for name, text in marked.items()
            if name.startswith(_OF_TOKENS)
        }
        self.recorded = recorded_in(marked)
        return self._rows.read(found)

    def _is_new(self, reader: Reader) -> bool:
        former, self._connections[reader] = self._connections.get(reader), reader.connection
        return former is not reader.connection

    async def is_another_kind(self) -> bool:
        """Return whether a server without a list of hosts is known to have had the deployment."""
        try:
            async with asyncio.timeout(_LIMIT_S):
                found = await _ask(self._first, "HMGET", self._metas[0], "epoch", "host")
        except TimeoutError:
            return False
        return found is not None and found[0] is not None and not found[1]

    async def host_of(self, shard: int) -> str | None:
        """Return the name of the host that has a shard, or had it last; None if that is unknown."""
        found = await _ask(self._readers[shard], "HMGET", self._metas[shard], "host")
        return _text(found[0]) or None if found else None

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

    async def record(self, shards: Sequence[int]) -> None:
        """Note that these shards were opened once. Raises `StoreUnavailable`."""
        for each in shards:
            await self._first.ask("HSET", self._hosts, record_of(each), "1")

    async def remove(self) -> None:
        """Remove the row of this host. Raises `StoreUnavailable`."""
        await self._first.ask("HDEL", self._hosts, self._own)

    async def write_tokens(self, tokens: Mapping[str, bytes], *, over: bool) -> None:
        """Write operators' tokens for all hosts. Raises `StoreUnavailable`."""
        for name, text in tokens.items():
            if text:
                await self._first.ask(
                    "HSET" if over else "HSETNX", self._hosts, _OF_TOKENS + name, text
                )
            else:
                await self._first.ask("HDEL", self._hosts, _OF_TOKENS + name)

    def close(self) -> None:
        """Close the connections."""
        for task in self._asked.values():
            task.cancel()
        for each in {*self._readers}:
            each.close()


async def _ask(reader: Reader, *command: str) -> Any:  # noqa: ANN401 - whatever it answers
    answers = await _ask_all(reader, [command])
    return answers and answers[0]


async def _ask_all(reader: Reader, commands: Iterable[Sequence[str]]) -> Sequence[Any] | None:
    try:
        return await reader.ask_all(*commands)
    except StoreUnavailable:
        return None


def _text(value: bytes | None) -> str:
    return (value or b"").decode()
