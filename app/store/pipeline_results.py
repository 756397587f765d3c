"""Results that the pipeline stores for operators."""

from typing import Any

import orjson
from redis.asyncio import Redis

from holdfast.store.keys import RedisKeys
from holdfast.store.reader import read

VERSION = 1


class PipelineResults:
    """Reads results on the reader; the pipeline replaces them."""

    def __init__(self, redis: Redis, keys: RedisKeys) -> None:
        self._redis = redis
        self._keys = keys

    async def get(self, name: str) -> dict[str, Any] | None:
        """Return the latest result of this name; None if this version can read none."""
        text = await read(self._redis.get(self._keys.pipeline_result(name)))
        if text is None:
            return None
        found: dict[str, Any] = orjson.loads(text)
        return found if found.pop("v") == VERSION else None
