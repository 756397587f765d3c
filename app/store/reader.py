"""The second connection to the store: operators' reads, which must not delay writes."""

from typing import Any

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from holdfast.store.connection import StoreUnavailable

_TIMEOUT_S = 5.0
_CONNECTIONS = 8


def open_reader(url: str) -> Redis:
    """Return a client with short timeouts and no retries; close it with `aclose`."""
    return Redis.from_url(
        url,
        socket_timeout=_TIMEOUT_S,
        socket_connect_timeout=_TIMEOUT_S,
        max_connections=_CONNECTIONS,
        retry=Retry(NoBackoff(), 0),
    )


async def read(answer: Any) -> Any:  # noqa: ANN401 - whatever the command answers
    """Await the reader's answer; raises `StoreUnavailable`."""
    try:
        return await answer
    except (RedisError, OSError) as error:
        raise StoreUnavailable(f"the store cannot be read: {error}") from error
