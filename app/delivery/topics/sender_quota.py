"""Quotas of senders: for topics that they create, and for messages in shared queues."""

from collections import Counter
from collections.abc import Sequence


class SenderQuota:
    """Counts items and their bytes for each sender, which is an address or a subject."""

    def __init__(self, entries: int, bytes: int) -> None:
        # Zero means no limit.
        self._most_entries, self._most_bytes = entries, bytes
        self._entries: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()

    def may_add(self, senders: Sequence[str], size: int) -> bool:
        """Return whether every sender has room for one more item of this size."""
        most_entries, most_bytes = self._most_entries, self._most_bytes
        for each in senders:
            if 0 < most_entries <= self._entries[each]:
                return False
            if 0 < most_bytes < self._bytes[each] + size:
                return False
        return True

    def add(self, senders: Sequence[str], size: int) -> None:
        for each in senders:
            self._entries[each] += 1
            self._bytes[each] += size

    def remove(self, senders: Sequence[str], size: int) -> None:
        for each in senders:
            self._entries[each] -= 1
            self._bytes[each] -= size
            if not self._entries[each]:
                del self._entries[each], self._bytes[each]
