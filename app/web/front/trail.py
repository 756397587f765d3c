"""When a connection is given: a trail shows whose its requests were."""

import re
from typing import Final, NamedTuple

# A connection is given at its first request if another shard has the session. Later it is given
# after this many requests in a row for one other shard: a proxy's connection, which many clients
# share, would wander otherwise. To give costs as much as forwarding a dozen requests.
IN_A_ROW: Final = 16
# How often a connection moves at most.
MOST_MOVES: Final = 3

_END: Final = b"\r\n\r\n"
_COOKIES: Final = re.compile(rb"\r\ncookie:[ \t]*([^\r\n]*)", re.IGNORECASE)
# Most POSTs arrive with their body, which says more exactly whose they are.
_POST: Final = b"POST "


class Trail(NamedTuple):
    """The latest requests of a connection that were for one other shard, without a gap."""

    shard: int
    # The number of the last one on its connection, and how many they are.
    number: int
    length: int

    def next(self, shard: int, number: int) -> "Trail":
        """Return the trail after another request that is for another shard."""
        is_in_a_row = shard == self.shard and number == self.number + 1
        return Trail(shard, number, self.length + 1 if is_in_a_row else 1)


NO_TRAIL: Final = Trail(-1, 0, 0)


def is_due(trail: Trail, *, is_new: bool, moves: int) -> bool:
    """Return whether a connection is to be given with the last request of its trail.

    Args:
        is_new: Whether this process has accepted it.
        moves: How often it was given before.
    """
    if moves >= MOST_MOVES:
        return False
    return trail.length >= IN_A_ROW or (is_new and trail.number == 1)


def cookies_of_first(data: bytes) -> list[str] | None:
    """Return the cookies of a connection's first request, if nothing else says whose it is.

    None if its head has not arrived, or its body tells more.
    """
    end = data.find(_END)
    if end < 0 or (data.startswith(_POST) and end + len(_END) < len(data)):
        return None
    return [found.decode("latin-1") for found in _COOKIES.findall(data, 0, end)]
