"""Replies that clients were given on connections which may be lost since.

Without acks, a client that did not get a reply shows it by the end of its connection alone: the
home asks for it when the client returns, perhaps by another door.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from holdfast.bayeux.session import Carrier
from holdfast.web.forwarding.request_owner import plain_id_in
from holdfast.web.front.fast_lane import FastLane
from holdfast.web.http.lone_requests import is_lone_connect

# How many replies are watched, the latest, and how often.
MOST_GIVEN: Final = 10_000
_LOOK_S: Final = 0.25


class GivenReplies:
    """The last reply with messages of each client, until its next connect.

    Args:
        lost: Called with the number of a reply whose connection is lost.
    """

    def __init__(self, lost: Callable[[int], None]) -> None:
        self._lost = lost
        self._given: OrderedDict[str, tuple[int, Carrier]] = OrderedDict()
        self._looking: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._given)

    def add(self, request: bytes, number: int, carrier: Carrier) -> None:
        """Watch the connection of a reply that was written."""
        client_id = plain_id_in(request)
        if client_id is None:
            return
        self._given.pop(client_id, None)
        self._given[client_id] = number, carrier
        if len(self._given) > MOST_GIVEN:
            self._given.popitem(last=False)
        if self._looking is None:
            self._look_later()

    def hear(self, request: bytes) -> None:
        """Tell whether the client's last reply was lost, before its next request is sent."""
        client_id = plain_id_in(request)
        if client_id is None or client_id not in self._given:
            return
        number, carrier = self._given[client_id]
        if _is_lost(carrier):
            self._lost(number)
            del self._given[client_id]
        elif is_lone_connect(request):
            del self._given[client_id]

    def clear(self) -> None:
        """Forget all: the link is lost, so the home takes them for lost."""
        self._given.clear()

    def _look_later(self) -> None:
        self._looking = asyncio.get_running_loop().call_later(_LOOK_S, self._look)

    def _look(self) -> None:
        self._looking = None
        gone = [each for each, (_, carrier) in self._given.items() if carrier.is_lost()]
        for client_id in gone:
            number, carrier = self._given.pop(client_id)
            if _is_lost(carrier):
                self._lost(number)
        if self._given:
            self._look_later()


def _is_lost(carrier: Carrier) -> bool:
    """Return whether a connection has ended, rather than been given with a further request."""
    return carrier.is_lost() and not (isinstance(carrier, FastLane) and carrier.is_given)
