"""The port to a part that follows single messages: the ledger tells it what happens to entries."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from holdfast.delivery.basics.error_codes import ErrorCode
    from holdfast.delivery.letters.unwritten import UnwrittenLetter
    from holdfast.delivery.messages.entries import Entry
    from holdfast.delivery.messages.message import Message
    from holdfast.delivery.messages.outcomes import Outcome
    from holdfast.delivery.queues.receivers import Receiver


class LedgerObserver(Protocol):
    """Follows messages. It never raises an exception, and never calls back into the core."""

    def handed(self, receiver: "Receiver", messages: "Sequence[Message]", /) -> None:
        """Hear of a hand-over, the first one of these messages or another."""
        ...

    def refused(
        self, receiver: "Receiver", entries: "Collection[Entry]", code: "ErrorCode", text: str, /
    ) -> None:
        """Hear of failed deliveries. What becomes of the entries follows."""
        ...

    def returned(self, receiver: "Receiver", entries: "Collection[Entry]", /) -> None:
        """Hear of entries that wait again."""
        ...

    def left(
        self, receiver: "Receiver", messages: "Sequence[Message]", outcome: "Outcome", /
    ) -> None:
        """Hear of messages that left the queue."""
        ...

    def dead(
        self,
        receiver: "Receiver",
        entries: "Sequence[Entry]",
        letters: "Sequence[UnwrittenLetter]",
        /,
    ) -> None:
        """Hear of messages of which these letters are left."""
        ...

    def replayed(self, key: str, message: "Message", letter: int, /) -> None:
        """Hear that a letter became a message again."""
        ...
