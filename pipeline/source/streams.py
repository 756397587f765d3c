"""The journals in a store, one stream for each node."""

from collections.abc import Collection
from typing import Any, NamedTuple, cast

from holdfast.pipeline.epochs import seed_of
from holdfast.pipeline.source.clients import answering, connect

# Bytes of frames: a few million events.
_SMALL = 32 * 1024 * 1024


def stream_of(namespace: str, node: str) -> str:
    """Return the key of a node's journal."""
    return f"{{{namespace}}}:journal:{node}"


class Ends(NamedTuple):
    """The two ends of a journal, as the store itself knows them."""

    # The number and the digest of the newest frame.
    seq: int
    digest: str
    # The number of frames that the server removed; None if an older server began the journal.
    trimmed: int | None


class Journals:
    """The journals of a namespace, and how far they go."""

    def __init__(self, url: str, namespace: str) -> None:
        self._url = url
        self.redis = connect(url)
        prefix = f"{{{namespace}}}:"
        # The machine and folder of each lake that reads.
        self.lakes = f"{prefix}lakes"
        self._meta = f"{prefix}meta"
        self._stream = stream_of(namespace, "")

    def nodes(self) -> list[str]:
        """Return the nodes that ever wrote a frame."""
        return sorted(self.numbered())

    def stream(self, node: str) -> str:
        return self._stream + node

    def progress(self, node: str) -> str:
        """Return the key of the progress of all readers: by lake, the id of the last frame."""
        return f"{self.stream(node)}:read"

    def epoch(self) -> str:
        """Return the epoch of the store; empty if no server has used it."""
        found = cast("bytes | None", self.redis.hget(self._meta, "epoch"))
        return (found or b"").decode()

    def is_of_others(self, seeds: Collection[str]) -> bool:
        """Return whether the store is not one of these: another one, or one that was emptied."""
        seed = seed_of(self.epoch())
        return bool(seed and seeds and seed not in seeds)

    def newest(self, node: str) -> str | None:
        """Return the id of the newest frame; None if there is none left."""
        found: Any = self.redis.xrevrange(self.stream(node), count=1)
        return found[0][0].decode() if found else None

    def seeds(self, node: str) -> set[str]:
        """Return the seeds of the oldest and the newest frame."""
        stream = self.stream(node)
        oldest: Any = self.redis.xrange(stream, count=1)
        newest: Any = self.redis.xrevrange(stream, count=1)
        epochs = [entry.get(b"epoch", b"") for _, entry in (*oldest, *newest)]
        return {seed_of(epoch.decode("utf-8", "replace")) for epoch in epochs}

    def ends(self, node: str) -> Ends:
        """Return the ends of a node's journal."""
        stream = self.stream(node)
        fields = (stream, f"digest {stream}", f"trimmed {stream}")
        seq, digest, trimmed = cast("list[bytes | None]", self.redis.hmget(self._meta, fields))
        return Ends(
            int(seq or 0), (digest or b"").decode(), None if trimmed is None else int(trimmed)
        )

    def heard(self) -> dict[str, int]:
        """Return when each node's server was last heard of: ms since 1970."""
        return self._numbers(f"heard {self._stream}")

    def numbered(self) -> dict[str, int]:
        """Return the number of each node's newest frame, even if that is missing."""
        return self._numbers(self._stream)

    def _numbers(self, before: str) -> dict[str, int]:
        """Return the numbers whose names begin with this text, by the rest: the node."""
        found = cast("dict[bytes, bytes]", self.redis.hgetall(self._meta))
        prefix = before.encode()
        return {
            name.removeprefix(prefix).decode(): int(number)
            for name, number in found.items()
            if name.startswith(prefix)
        }

    def are_small(self) -> bool:
        """Return whether reading takes no longer than Java's warm-up."""
        with answering(self._url):
            sizes = (self.redis.memory_usage(self.stream(node)) for node in self.nodes())
            return sum(size or 0 for size in sizes) < _SMALL
