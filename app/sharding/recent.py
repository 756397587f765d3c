"""Recognizes messages and calls that another shard has appended to its log twice.

A shard whose store went back appends again what that store has lost. Others may have taken it
before.
"""

from typing import Final

# How many ids are remembered at least. What a store may have lost is a matter of seconds.
_GENERATION: Final = 20_000


class RecentIds:
    """The ids of the messages and calls of one shard that have arrived here of late."""

    def __init__(self, generation: int = _GENERATION) -> None:
        self._most = generation
        self._young: set[int] = set()
        self._old: set[int] = set()

    def __contains__(self, id: int) -> bool:
        return id in self._young or id in self._old

    def add(self, id: int) -> None:
        """Remember an id, and forget old ones if there are too many."""
        self._young.add(id)
        if len(self._young) >= self._most:
            self._old, self._young = self._young, set()
