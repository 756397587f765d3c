"""Limits how many requests wait for messages of histories."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.bayeux.wire.errors import ErrorReply, RequestRefused


class ReaderLimits:
    """Counts the requests that wait, in all and by address."""

    def __init__(self, most: int, most_of_address: int) -> None:
        self._most, self._most_of_address = most, most_of_address
        self._of_address: Counter[str] = Counter()
        self.waiting = 0

    @contextmanager
    def one_more(self, network: str) -> Iterator[None]:
        """Count a request while it waits. Raises `RequestRefused` if there are too many."""
        if self.waiting >= self._most:
            raise RequestRefused(ErrorReply.READERS_EXCEEDED, "max_readers", wait_s=1.0)
        if network and 0 < self._most_of_address <= self._of_address[network]:
            raise RequestRefused(ErrorReply.READERS_EXCEEDED, "quota_readers", wait_s=1.0)
        self.waiting += 1
        self._of_address[network] += 1
        try:
            yield
        finally:
            self.waiting -= 1
            self._of_address[network] -= 1
            if not self._of_address[network]:
                del self._of_address[network]
