"""What features know of one queue, and what the queue asks and tells them."""

from collections.abc import Mapping, Sequence

from holdfast.delivery.messages.entries import Entry, SettledBy
from holdfast.delivery.messages.message import Message


class QueueRecord:
    """What one feature knows of a queue until the queue is empty.

    A feature overrides what concerns it.
    """

    __slots__ = ()

    def blocks(self, in_flight: Mapping[int, Entry], settling: SettledBy) -> bool:
        """Return whether nothing may be handed over while these entries are in flight."""
        return False

    def passes_hold(self, message: Message) -> bool:
        """Return whether the message may be handed over although its channel is held."""
        return False

    def is_over_after(self, messages: Sequence[Message]) -> bool:
        """Return whether a hand-over of these messages ends what the record is for."""
        return False
