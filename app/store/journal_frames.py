"""Reads the journal of one node for operators, page by page from a moment on."""

from redis.asyncio import Redis

from holdfast.store.keys import RedisKeys
from holdfast.store.reader import read


class JournalFrames:
    """Reads frames on the reader, as far as they are not trimmed."""

    def __init__(self, redis: Redis, keys: RedisKeys) -> None:
        self._redis = redis
        self._keys = keys

    async def since(
        self, node: str, ms: int, cursor: str | None, most: int
    ) -> list[tuple[str, bytes]]:
        """Return frames since that time and after the cursor, each with a cursor of its own."""
        first = f"{ms}-0" if cursor is None else f"({cursor}"
        found = await read(self._redis.xrange(self._keys.journal(node), first, "+", count=most))
        return [(id.decode(), fields[b"frame"]) for id, fields in found]

    async def lakes(self) -> list[str]:
        """Return the machines and folders of the tables that the journal is read into."""
        found = await read(self._redis.hvals(self._keys.lakes))
        return sorted(place.decode("utf-8", "replace") for place in found)
