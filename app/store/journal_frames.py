"""The journal as an operator reads it: frames of one node, from a moment on, part by part."""

from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from app.store.connection import StoreUnavailable
from app.store.keys import Keys


class JournalFrames:
    """Reads frames beside the line. What the pipeline has taken away is not there any more."""

    def __init__(self, redis: Redis, keys: Keys) -> None:
        self._redis = redis
        self._keys = keys

    async def since(
        self, node: str, ms: int, cursor: str | None, most: int
    ) -> list[tuple[str, bytes]]:
        """Frames that were written then or later, behind the cursor; each with its own."""
        first = f"{ms}-0" if cursor is None else f"({cursor}"
        try:
            found: Any = await self._redis.xrange(self._keys.journal(node), first, "+", count=most)
        except (RedisError, OSError) as error:
            raise StoreUnavailable(f"the store cannot be read: {error}") from error
        return [(id.decode(), fields[b"frame"]) for id, fields in found]
