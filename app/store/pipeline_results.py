"""What the pipeline has written back for operators: whole values, each under its name."""

from typing import Any, cast

import orjson
from redis.asyncio import Redis
from redis.exceptions import RedisError

from app.store.connection import StoreUnavailable
from app.store.keys import Keys

VERSION = 1


class PipelineResults:
    """Reads them beside the line; whoever runs the pipeline replaces them."""

    def __init__(self, redis: Redis, keys: Keys) -> None:
        self._redis = redis
        self._keys = keys

    async def get(self, name: str) -> dict[str, Any] | None:
        """The latest of this name; None if there is none that this server knows how to read."""
        try:
            text = await self._redis.get(self._keys.pipeline_result(name))
        except (RedisError, OSError) as error:
            raise StoreUnavailable(f"the store cannot be read: {error}") from error
        if text is None:
            return None
        found: dict[str, Any] = orjson.loads(cast("bytes", text))
        return found if found.pop("v") == VERSION else None
