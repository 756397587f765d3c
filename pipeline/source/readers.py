"""Journal readers: the lakes that read the journals of a namespace, with their progress.

The server keeps a frame until all of them have it, within limits of age and size.
"""

from collections.abc import Mapping
from typing import NamedTuple, cast

from holdfast.pipeline.source.outline import BEGIN, Position
from holdfast.pipeline.source.streams import Journals

# Older versions had one id for all lakes.
_SHARED = "ingest"


class JournalReader(NamedTuple):
    """A lake that reads the journals."""

    lake: str
    # Its machine and folder.
    place: str
    # When the latest frame that the lake has came into the store, in ms since 1970; None if it has
    # none.
    until: int | None


class Readers:
    """All readers of the journals of one namespace."""

    def __init__(self, journals: Journals) -> None:
        self._journals = journals

    def report(self, lake: str, place: str, positions: Mapping[str, Position]) -> None:
        """Report the frames that a lake has stored; the server trims those that all readers have.

        Of a node that is missing in `positions`, the lake has read nothing.
        """
        for shard in self._journals.shards:
            with shard.redis.pipeline(transaction=True) as together:
                together.hset(shard.lakes, lake, place)
                for node in shard.nodes():
                    progress = self._journals.progress(node)
                    together.hset(progress, lake, positions.get(node, Position()).id)
                    together.hdel(progress, _SHARED)
                together.execute()

    def all(self) -> list[JournalReader]:
        """Return all readers, by the ids of their lakes."""
        found: dict[bytes, bytes] = {}
        for shard in self._journals.shards:
            found |= cast("dict[bytes, bytes]", shard.redis.hgetall(shard.lakes))
        return [
            JournalReader(lake.decode(), place.decode("utf-8", "replace"), self._until(lake))
            for lake, place in sorted(found.items())
        ]

    def _until(self, lake: bytes) -> int | None:
        journals = self._journals
        found = (
            journals.redis(node).hget(journals.progress(node), lake.decode())
            for node in journals.nodes()
        )
        ids = (cast("bytes", id).decode() for id in found if id is not None)
        return max((_ms(id) for id in ids if id != BEGIN), default=None)

    def drop(self, lake: str) -> bool:
        """Forget a lake, for which no frames need to stay; return whether it was known."""
        was_known = False
        for shard in self._journals.shards:
            with shard.redis.pipeline(transaction=True) as together:
                for node in shard.nodes():
                    together.hdel(self._journals.progress(node), lake)
                together.hdel(shard.lakes, lake)
                was_known |= bool(together.execute()[-1])
        return was_known


def _ms(id: str) -> int:
    return int(id.partition("-")[0])
