"""The ids of messages that were processed, by which repeats are recognised."""

# A server redelivers what is in flight, and no queue that it keeps has more than this by default.
_MOST = 10_000


class FinishedIds:
    """The last ids, in two halves: the older one is forgotten when the newer one is full."""

    __slots__ = ("_half", "_newer", "_older")

    def __init__(self, most: int = _MOST) -> None:
        self._half = max(most // 2, 1)
        self._newer: set[str] = set()
        self._older: set[str] = set()

    def add(self, id: str) -> None:
        if len(self._newer) >= self._half:
            self._older, self._newer = self._newer, set()
        self._newer.add(id)

    def __contains__(self, id: str) -> bool:
        return id in self._newer or id in self._older
