"""The connection to Redis or Valkey, and whether it can be relied upon."""

from redis.asyncio import Redis
from redis.exceptions import RedisError

_OLDEST = 7
_PATIENCE_S = 2.0


class StoreUnavailable(Exception):
    """The store cannot be reached or cannot be used; the text says why."""


class Store:
    """A Redis-protocol server that this one depends on."""

    def __init__(self, url: str) -> None:
        self._redis: Redis = Redis.from_url(
            url, socket_timeout=_PATIENCE_S, socket_connect_timeout=_PATIENCE_S
        )

    async def open(self) -> None:
        """Refuse a store that is away or too old."""
        try:
            info = await self._redis.info("server")
        except RedisError as error:
            raise StoreUnavailable(f"redis cannot be reached: {error}") from error
        version = str(info.get("redis_version", "unknown"))
        major = version.partition(".")[0]
        if not major.isdecimal() or int(major) < _OLDEST:
            raise StoreUnavailable(f"redis {version} is too old: {_OLDEST}.0 is needed")

    async def is_there(self) -> bool:
        """Whether the store answers."""
        try:
            await self._redis.ping()
        except RedisError:
            return False
        return True

    async def close(self) -> None:
        await self._redis.aclose()
