"""The latest changes of histories, so that readers of many channels look at few of them."""

from bisect import bisect_right, insort

# How many changes are remembered at least, and twice as many at most.
_MOST = 1024


def _cursor_of(change: tuple[int, str]) -> int:
    return change[0]


class HistoryNews:
    """Which histories have got or lost messages behind a place that is not long ago."""

    def __init__(self) -> None:
        # Cursors of messages with their channels, sorted.
        self._changes: list[tuple[int, str]] = []
        # Changes behind this cursor are all here.
        self.floor = 0

    def add(self, cursor: int, channel: str) -> None:
        """Note that a message has entered the channel's history, or was lost from there."""
        changes, change = self._changes, (cursor, channel)
        if changes and change < changes[-1]:
            insort(changes, change)
        else:
            changes.append(change)
        if len(changes) > 2 * _MOST:
            self.floor = max(self.floor, changes[_MOST - 1][0])
            del changes[:_MOST]

    def since(self, cursor: int) -> dict[str, None] | None:
        """Return the channels that have changed behind the cursor; None if this is not known."""
        if cursor < self.floor:
            return None
        changes = self._changes
        place = bisect_right(changes, cursor, key=_cursor_of)
        return dict.fromkeys([channel for _, channel in changes[place:]])
