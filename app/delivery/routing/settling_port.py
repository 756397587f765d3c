"""The port to what settles messages while they are routed."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from holdfast.delivery.basics.error_codes import ErrorCode
from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.messages.message import Message
from holdfast.delivery.queues.receivers import Receiver

R_contra = TypeVar("R_contra", bound=Receiver, contravariant=True)


class SettlingPort(Protocol[R_contra]):
    """Settles messages that leave queues, or do not enter them, while queues are filled.

    The circle is real: settling an entry may put messages into other queues, and a message that
    enters a queue may push others out.
    """

    def turned_away(
        self, receivers: Sequence[R_contra], message: Message, reason: Reason, /
    ) -> None:
        """Settle a message that the queues of these receivers refused."""
        ...

    def dead_letter(
        self, receiver: R_contra, entries: Sequence[Entry], code: ErrorCode, text: str, /
    ) -> None:
        """Dead-letter entries that have left their queue."""
        ...

    def discard(self, receiver: R_contra, messages: Sequence[Message], reason: Reason, /) -> None:
        """Discard messages that have left their queue, without dead letters."""
        ...

    def make_room_for(self, receiver: R_contra, message: Message, /) -> bool:
        """Queue the message in a full queue by expiring others. Returns False if none can."""
        ...

    def watch_expiry(self, receiver: R_contra, /) -> None:
        """Expire the receiver's messages when their lifetime ends."""
        ...

    def forget_expiry(self, receiver: R_contra, /) -> None:
        """Stop watching the receiver."""
        ...

    def recheck(self, message: Message, receivers: Sequence[R_contra], /) -> None:
        """Check whether the receivers may still get a message accepted before rights changed."""
        ...
