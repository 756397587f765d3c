"""The processes that serve clients: whether a host needs one without a shard, and how many live."""

from collections.abc import Callable, Collection, Mapping
from math import inf
from typing import Final

# Workers that start may take so long before clients get a door: it would hardly be sooner.
_STARTING_S: Final = 5.0
# And so long a door, before the last worker leaves without one.
_WAITING_S: Final = 10.0


class DoorNeed:
    """Looks at the workers of this host."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        # Since when no worker serves that stays; infinity while one does.
        self._since = inf

    def is_there(
        self, here: Collection[int], serving: Collection[int], leaving: Collection[int]
    ) -> bool:
        """Return whether a door is needed now.

        Args:
            here: The shards that have a worker on this host, or are about to.
            serving: Those whose workers serve clients.
            leaving: Those that this host is about to give away.
        """
        if {*serving} - {*leaving}:
            self._since = inf
            return False
        self._since = min(self._since, self._clock())
        is_starting = bool({*here} - {*leaving})
        return not is_starting or self._clock() - self._since > _STARTING_S

    @property
    def is_awaited(self) -> bool:
        """Whether the last worker waits for a door before it leaves."""
        return self._clock() - self._since < _WAITING_S


def parts_of(own: str, reached: Mapping[int, str]) -> int:
    """Return among how many doors an address divides its requests, as one door sees it.

    What leads clients to hosts sends each of them an equal part, however many doors it has.

    Args:
        reached: The host of each other shard that the door reaches.
    """
    hosts = {own, *reached.values()}
    here = 1 + sum(host == own for host in reached.values())
    return len(hosts) * here
