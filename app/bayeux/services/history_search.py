"""Searches the histories of channels."""

from holdfast.delivery.basics.channels import Channel
from holdfast.delivery.messages.message import Message
from holdfast.delivery.routing.histories import MOST_LOOKS, Histories
from holdfast.delivery.routing.selections import Candidate, Filter

# How many bytes of messages one search finds, unless a single one has more.
MOST_BYTES = 1024 * 1024
# How many messages one filter tests.
_MOST_MESSAGES = 10_000


class HistorySearch:
    """Finds the newest messages of histories, over as many turns as necessary.

    Args:
        count: How many of the newest messages of each channel to look at; all if negative.
        limit: How many messages to find.
        most_bytes: Their total size, unless a single one has more.
    """

    def __init__(
        self,
        histories: Histories,
        pattern: Channel,
        *,
        count: int,
        limit: int,
        filter: Filter | None,
        now_ms: int,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._filter = filter
        self._limit, self._most_bytes = limit, most_bytes
        covered, looked = histories.covered_by(pattern)
        self._kept = (each for own in covered for each in reversed(own.newest(count, now_ms)))
        # How many messages it may still look at.
        self._left = limit if filter is None else _MOST_MESSAGES
        kept = sum([len(own) if count < 0 else min(count, len(own)) for own in covered])
        # How many messages it looks at.
        self.asked = min(kept, self._left)
        # Whether nothing is left out.
        self.is_complete = looked <= MOST_LOOKS
        self.messages: list[Message] = []
        self._size = 0

    def go_on(self, _: float) -> bool:
        """Look at one message. Returns whether any is left."""
        message = next(self._kept, None)
        if message is None:
            return False
        if self._left and self._takes(message):
            self._left -= 1
            return True
        self.is_complete = False
        return False

    def _takes(self, message: Message) -> bool:
        """Add the message if it passes. Returns whether there was room for it."""
        if self._filter is not None and not Candidate.of(message).passes(self._filter):
            return True
        self._size += len(message.wire)
        if (self.messages and self._size > self._most_bytes) or len(self.messages) == self._limit:
            return False
        self.messages.append(message)
        return True
