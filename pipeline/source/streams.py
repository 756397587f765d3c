"""The journals of a deployment: one stream for each node, in the store of its shard.

A deployment is one shard or several. Each has a separate store, or separate keys in the same one.
The node of a shard has its number behind a slash, except in the first one.
"""

import json
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from holdfast.pipeline.epochs import seed_of
from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.source.clients import answering, connect
from holdfast.store.format.tags import tag_of

if TYPE_CHECKING:
    from redis import Redis

# Bytes of frames: a few million events.
_SMALL = 32 * 1024 * 1024


def shard_of(node: str) -> int:
    """Return the number of a node's shard."""
    number = node.rpartition("/")[2]
    return int(number) if "/" in node and number.isdecimal() else 0


def stream_of(namespace: str, node: str) -> str:
    """Return the key of a node's journal."""
    return f"{{{tag_of(namespace, shard_of(node))}}}:journal:{node}"


class Ends(NamedTuple):
    """The two ends of a journal, as the store itself knows them."""

    # The number and the digest of the newest frame.
    seq: int
    digest: str
    # The number of frames that the server removed; None if an older server began the journal.
    trimmed: int | None


class Shard(NamedTuple):
    """What a store has of one shard."""

    redis: "Redis"
    # What its keys begin with.
    tag: str

    @property
    def meta(self) -> str:
        return f"{self.tag}meta"

    @property
    def lakes(self) -> str:
        """The key of the machine and folder of each lake that reads."""
        return f"{self.tag}lakes"

    @property
    def epoch(self) -> str:
        """The epoch of the store; empty if no server has used it."""
        found = cast("bytes | None", self.redis.hget(self.meta, "epoch"))
        return (found or b"").decode()

    def nodes(self) -> list[str]:
        """Return the nodes that ever wrote a frame."""
        return sorted(self.numbers(""))

    def numbers(self, before: str) -> dict[str, int]:
        """Return the numbers whose names begin with this text, by the rest: the node."""
        found = cast("dict[bytes, bytes]", self.redis.hgetall(self.meta))
        prefix = f"{before}{self.tag}journal:".encode()
        return {
            name.removeprefix(prefix).decode(): int(number)
            for name, number in found.items()
            if name.startswith(prefix)
        }


class Journals:
    """The journals of a namespace, and how far they go.

    Args:
        urls: The stores of the shards in their order, with blanks between them; or the one that all
            of them have.
    """

    def __init__(self, urls: str, namespace: str) -> None:
        self._urls = urls
        self._namespace = namespace
        connected = {url: connect(url) for url in dict.fromkeys(urls.split())}
        stores = [connected[url] for url in urls.split()]
        with answering(urls):
            count = _count(_shard(stores, namespace, 0))
            self.shards = [_shard(stores, namespace, number) for number in range(count)]
            self._check()

    def _check(self) -> None:
        missing = [n for n, shard in enumerate(self.shards) if n and not shard.epoch]
        if missing:
            raise PipelineFailed(
                f"shard {missing[0]} of {len(self.shards)} is not in this store: name the stores "
                "of all shards in their order, with blanks between them"
            )

    def nodes(self) -> list[str]:
        """Return the nodes that ever wrote a frame."""
        return sorted(self.numbered())

    def check_journal(self) -> None:
        """Raise `PipelineFailed` if no server has written a frame, and say why that may be."""
        if self.nodes():
            return
        why = (
            "its server has just begun, or its setting journal is off"
            if self.epoch()
            else "no server has used it in this store"
        )
        raise PipelineFailed(f"the namespace {self._namespace} has no journal: {why}")

    def redis(self, node: str) -> "Redis":
        """Return the store that has a node's journal."""
        return self._of(node).redis

    def stream(self, node: str) -> str:
        return stream_of(self._namespace, node)

    def progress(self, node: str) -> str:
        """Return the key of the progress of all readers: by lake, the id of the last frame."""
        return f"{self.stream(node)}:read"

    def epoch(self) -> str:
        """Return the epoch of the first shard's store; empty if no server has used it."""
        return self.shards[0].epoch

    def is_of_others(self, seeds: Collection[str]) -> bool:
        """Return whether a store is not one of these: another one, or one that was emptied."""
        found = {seed_of(shard.epoch) for shard in self.shards} - {""}
        return bool(seeds and found - {*seeds})

    def newest(self, node: str) -> str | None:
        """Return the id of the newest frame; None if there is none left."""
        found: Any = self.redis(node).xrevrange(self.stream(node), count=1)
        return found[0][0].decode() if found else None

    def seeds(self, node: str) -> set[str]:
        """Return the seeds of the oldest and the newest frame."""
        redis, stream = self.redis(node), self.stream(node)
        oldest: Any = redis.xrange(stream, count=1)
        newest: Any = redis.xrevrange(stream, count=1)
        epochs = [entry.get(b"epoch", b"") for _, entry in (*oldest, *newest)]
        return {seed_of(epoch.decode("utf-8", "replace")) for epoch in epochs}

    def ends(self, node: str) -> Ends:
        """Return the ends of a node's journal."""
        stream, shard = self.stream(node), self._of(node)
        fields = (stream, f"digest {stream}", f"trimmed {stream}")
        found = cast("list[bytes | None]", shard.redis.hmget(shard.meta, fields))
        seq, digest, trimmed = found
        return Ends(
            int(seq or 0), (digest or b"").decode(), None if trimmed is None else int(trimmed)
        )

    def heard(self) -> dict[str, int]:
        """Return when each node's server was last heard of: ms since 1970."""
        return self._of_all(lambda shard: shard.numbers("heard "))

    def numbered(self) -> dict[str, int]:
        """Return the number of each node's newest frame, even if that is missing."""
        return self._of_all(lambda shard: shard.numbers(""))

    def are_small(self) -> bool:
        """Return whether reading takes no longer than Java's warm-up."""
        with answering(self._urls):
            sizes = (self.redis(node).memory_usage(self.stream(node)) for node in self.nodes())
            return sum(size or 0 for size in sizes) < _SMALL

    def _of(self, node: str) -> Shard:
        number = shard_of(node)
        # A node of a shard that is not there has no frames.
        return self.shards[number if number < len(self.shards) else 0]

    def _of_all(self, ask: Callable[[Shard], dict[str, int]]) -> dict[str, int]:
        return {node: number for shard in self.shards for node, number in ask(shard).items()}


def _shard(stores: "list[Redis]", namespace: str, number: int) -> Shard:
    return Shard(stores[number % len(stores)], f"{{{tag_of(namespace, number)}}}:")


def _count(first: Shard) -> int:
    """Return how many shards there are; the first one knows it if there are several."""
    found = cast("bytes | None", first.redis.hget(first.meta, "shards"))
    if not found:
        return 1
    # Ranges of buckets, each with its shard.
    ranges: list[tuple[int, int, int]] = json.loads(found)["ranges"]
    return 1 + max(shard for _, _, shard in ranges)
