"""Up to when this shard has learned everything that the logs of other shards had."""

from collections.abc import Callable, Iterable
from math import inf

from holdfast.cluster.places import Place


class _Contact:
    """The reads of one log."""

    __slots__ = ("began_at", "behind", "caught_up_at", "heard_at")

    def __init__(self) -> None:
        # When the newest read began, and up to when everything was shown that the log had.
        self.began_at = self.heard_at = -inf
        # The place up to which an earlier read had everything, and when that read began; None if
        # all of it was shown.
        self.behind: Place | None = None
        self.caught_up_at = -inf


class Contacts:
    """Notes when reads of logs began, and when all that they found was shown.

    Args:
        clock: It is never set, and runs while this process does not.
    """

    def __init__(self, shards: Iterable[int], clock: Callable[[], float]) -> None:
        self.clock = clock
        self._by_shard = {shard: _Contact() for shard in shards}

    def begin(self, shard: int) -> None:
        """Note that a read begins."""
        self._by_shard[shard].began_at = self.clock()

    def end(self, shard: int, place: Place, shown: Place, *, is_all: bool) -> None:
        """Note what a read has found.

        Args:
            place: The place behind it.
            shown: The place behind the last frame that was shown.
            is_all: Whether the log had no more.
        """
        contact = self._by_shard[shard]
        if contact.behind is None and is_all:
            contact.behind, contact.caught_up_at = place, contact.began_at
        self.show(shard, shown)

    def show(self, shard: int, shown: Place) -> None:
        """Note that everything before a place was shown."""
        contact = self._by_shard[shard]
        behind = contact.behind
        if behind is not None and (shown.fence, shown.n) >= (behind.fence, behind.n):
            contact.heard_at, contact.behind = contact.caught_up_at, None

    def heard_at(self, shard: int) -> float:
        """Return up to when everything was shown; minus infinity if nothing was."""
        return self._by_shard[shard].heard_at
