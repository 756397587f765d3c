"""Requests that wait for a shard to which there is no link for a while."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from holdfast.bayeux.wire.errors import ErrorReply, RequestRefused
from holdfast.web.scheduling.request_scheduler import UnfinishedRequest

# How long they wait, and how many bytes of them at most.
PATIENCE_S: Final = 5.0
MOST_BYTES: Final = 16 * 1024 * 1024
# What a request takes besides its body.
_REQUEST_BYTES: Final = 1024
# When clients should repeat what is refused.
RETRY_S: Final = 1.0


def refuse(request: UnfinishedRequest, *args: str) -> None:
    """Refuse a request for now: its client may try again."""
    request.done(RequestRefused(ErrorReply.SERVER_BUSY, *args, wait_s=RETRY_S))


class Parking:
    """Keeps requests in order of arrival, and refuses those that wait too long."""

    def __init__(self, clock: Callable[[], float], most_bytes: int = MOST_BYTES) -> None:
        self._clock = clock
        self._most_bytes = most_bytes
        self._bytes = 0
        self._parked: deque[tuple[float, UnfinishedRequest]] = deque()
        self._giving_up: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._parked)

    def park(self, request: UnfinishedRequest) -> None:
        """Keep the request, or refuse it later in this turn if there is no room."""
        if self._bytes + _size_of(request) > self._most_bytes:
            asyncio.get_running_loop().call_soon(refuse, request)
            return
        self._parked.append((self._clock(), request))
        self._bytes += _size_of(request)
        self._give_up_later()

    def take(self) -> UnfinishedRequest:
        """Remove and return the oldest request."""
        _, request = self._parked.popleft()
        self._bytes -= _size_of(request)
        return request

    def _give_up_later(self) -> None:
        if self._giving_up is None and self._parked:
            since, _ = self._parked[0]
            wait_s = max(0.0, since + PATIENCE_S - self._clock())
            self._giving_up = asyncio.get_running_loop().call_later(wait_s, self._give_up)

    def _give_up(self) -> None:
        self._giving_up = None
        latest = self._clock() - PATIENCE_S
        while self._parked and self._parked[0][0] <= latest:
            refuse(self.take())
        self._give_up_later()


def _size_of(request: UnfinishedRequest) -> int:
    return len(request.body) + _REQUEST_BYTES
