"""The journals in a store, one stream of each node."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from pipeline.failures import PipelineFailed

if TYPE_CHECKING:
    from redis import Redis

_PATIENCE_S = 10.0
# Bytes of frames: some millions of events.
_SMALL = 32 * 1024 * 1024


def connect(url: str) -> "Redis":
    """A client that gives up soon."""
    from redis import Redis
    from redis.backoff import ExponentialBackoff
    from redis.retry import Retry

    return Redis.from_url(
        url,
        socket_timeout=_PATIENCE_S,
        socket_connect_timeout=_PATIENCE_S,
        retry=Retry(ExponentialBackoff(), 3),
    )


class Journals:
    """Where the journals of a namespace are and how far they go."""

    def __init__(self, url: str, namespace: str) -> None:
        self._url = url
        self.redis = connect(url)
        prefix = f"{{{namespace}}}:"
        self._meta = f"{prefix}meta"
        self._stream = f"{prefix}journal:"

    def nodes(self) -> list[str]:
        """Those that ever wrote a frame."""
        return sorted(self.numbered())

    def stream(self, node: str) -> str:
        return self._stream + node

    def newest(self, node: str) -> str | None:
        """The id of the newest frame; None if there is none any more."""
        found: Any = self.redis.xrevrange(self.stream(node), count=1)
        return found[0][0].decode() if found else None

    def numbered(self) -> dict[str, int]:
        """The number of each node's newest frame, whether it is there or not."""
        found = cast("dict[bytes, bytes]", self.redis.hgetall(self._meta))
        prefix = self._stream.encode()
        return {
            name.removeprefix(prefix).decode(): int(number)
            for name, number in found.items()
            if name.startswith(prefix)
        }

    def are_small(self) -> bool:
        """Whether it takes as long to get into the swing of work as to do it."""
        with answering(self._url):
            sizes = (self.redis.memory_usage(self.stream(node)) for node in self.nodes())
            return sum(size or 0 for size in sizes) < _SMALL

    def tell_read(self, consumer: str, ids: Mapping[str, str]) -> None:
        """Up to these everything is kept elsewhere for good; the server may cut it off."""
        for node, id in ids.items():
            self.redis.hset(f"{self.stream(node)}:read", consumer, id)


@contextmanager
def answering(url: str) -> Iterator[None]:
    """Say clearly why the store does not answer as it should, if it does not."""
    from redis.exceptions import AuthenticationError, RedisError, ResponseError

    try:
        yield
    except AuthenticationError as error:
        words = f"the store lets nobody in like this ({error}): --redis redis://USER:PASSWORD@HOST"
        raise PipelineFailed(f"{_place(url)}: {words}") from error
    except ResponseError as error:
        words = f"this is no store of Holdfast's, or has no room: {error}"
        raise PipelineFailed(f"{_place(url)}: {words}") from error
    except (RedisError, OSError) as error:
        words = f"the store does not answer ({error}). Does the server run?"
        raise PipelineFailed(f"{_place(url)}: {words}") from error


def _place(url: str) -> str:
    """The URL without the password that may be in it."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"
