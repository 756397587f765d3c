"""The other connection to the store: reads for operators, who must not hold up what is kept."""

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

_PATIENCE_S = 5.0
_CONNECTIONS = 8


def open_reader(url: str) -> Redis:
    """A client that gives up soon and asks once; to be closed by `aclose`."""
    return Redis.from_url(
        url,
        socket_timeout=_PATIENCE_S,
        socket_connect_timeout=_PATIENCE_S,
        max_connections=_CONNECTIONS,
        retry=Retry(NoBackoff(), 0),
    )
