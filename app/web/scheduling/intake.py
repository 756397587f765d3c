"""The requests that are still arriving or wait to be handled: their bytes, and since when.

Each request has a limit, but a thousand clients that never finish their requests would use a
thousand times that. One network may use at most half, so that it cannot lock others out.
"""

from collections import OrderedDict, deque
from math import inf
from sys import maxsize
from typing import TYPE_CHECKING, Final

from holdfast.bayeux.wire.errors import ErrorReply, RequestRefused

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.bayeux.session import Exchange

# Smaller requests are parsed and decoded at once, so they are not counted.
SMALL: Final = 4096


class Intake:
    """Counts the bytes of unfinished requests; every `take` needs its `give_back`.

    A network is the unit of limits per address (`Caller.network`); an empty one has no share.
    """

    def __init__(self, limit: int = maxsize) -> None:
        self.limit = limit
        self.share = limit // 2
        self.used = 0
        # By network; networks that use nothing have no entry.
        self._held_by: dict[str, int] = {}

    def take(self, size: int, network: str = "") -> None:
        """Take room for `size` bytes; raises `RequestRefused` if there is not enough."""
        if self.used + size > self.limit:
            raise RequestRefused(ErrorReply.SERVER_BUSY)
        if network and size:
            held = self._held_by.get(network, 0) + size
            if held > self.share:
                raise RequestRefused(ErrorReply.SERVER_BUSY)
            self._held_by[network] = held
        self.used += size

    def give_back(self, size: int, network: str = "") -> None:
        """Give room back: the request is complete or was aborted."""
        self.used -= size
        if network and size:
            held = self._held_by[network] - size
            if held:
                self._held_by[network] = held
            else:
                del self._held_by[network]

    def __len__(self) -> int:
        """Return the number of networks that use anything."""
        return len(self._held_by)


class UnreadRequests:
    """When unread requests arrived. The request scheduler keeps it; the core asks it."""

    def __init__(self) -> None:
        # When requests arrived whose sessions are unknown yet, oldest first.
        self.requests: OrderedDict[Exchange, float] = OrderedDict()
        # Connections whose bytes arrived too late in a turn to be read, each with the time.
        self.deferred: deque[tuple[float, Callable[[], None]]] = deque()
        # When connections got in line whose bytes have to be parsed, oldest first.
        self.in_line: OrderedDict[Callable[[], None], float] = OrderedDict()

    def since(self) -> float:
        """Return when the oldest one arrived; infinity if there is none."""
        oldest = min(next(iter(each.values()), inf) for each in (self.requests, self.in_line))
        return min(oldest, self.deferred[0][0]) if self.deferred else oldest
