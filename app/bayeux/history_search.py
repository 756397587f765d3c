"""Searches in the histories of channels."""

from collections import deque
from collections.abc import Callable
from itertools import islice

from holdfast.delivery.channels import Channel
from holdfast.delivery.kept_messages import MOST_LOOKS, Histories
from holdfast.delivery.messages import Message
from holdfast.delivery.selections import Candidate, Filter

_MOST_BYTES = 1024 * 1024
# The most messages that one filter tests.
_MOST_MESSAGES = 10_000


class HistorySearch:
    """Finds the newest messages of histories, over as many turns as a filter takes.

    Args:
        count: How many of the newest messages of each channel it looks at; all if negative.
        limit: How many messages it finds at most; their size is at most 1 MiB.
        done: Called with the search when it has ended.
    """

    def __init__(
        self,
        histories: Histories,
        pattern: Channel,
        count: int,
        limit: int,
        filter: Filter | None,
        done: Callable[["HistorySearch"], None],
        *,
        now_ms: int,
    ) -> None:
        self._filter = filter
        self._limit = limit
        self._done = done
        covered, looked = histories.covered_by(pattern)
        kept = (each for own in covered for each in reversed(own.newest(count, now_ms)))
        most = limit if filter is None else _MOST_MESSAGES
        self._candidates = deque(islice(kept, most))
        # How many messages a filter tests.
        self.asked = 0 if filter is None else len(self._candidates)
        # Whether nothing is left out.
        self.is_complete = looked <= MOST_LOOKS and next(kept, None) is None
        self.messages: list[Message] = []
        self._size = 0

    def go_on(self, _: float) -> bool:
        """Look at one message; return whether any is left."""
        if self._candidates:
            self._look_at(self._candidates.popleft())
        if self._candidates:
            return True
        self._done(self)
        return False

    def _look_at(self, message: Message) -> None:
        if not self._passes(message):
            return
        self._size += len(message.wire)
        is_too_much = bool(self.messages) and self._size > _MOST_BYTES
        if is_too_much or len(self.messages) == self._limit:
            self.is_complete = False
            self._candidates.clear()
        else:
            self.messages.append(message)

    def _passes(self, message: Message) -> bool:
        return self._filter is None or Candidate.of(message).passes(self._filter)
