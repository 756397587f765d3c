"""The port to the journal for what passes: told what becomes of messages, as it becomes of them."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from app.delivery.counters import Reason
    from app.delivery.dispatcher import State
    from app.delivery.entries import Entry
    from app.delivery.error_codes import ErrorCode
    from app.delivery.messages import Message
    from app.delivery.receivers import Receiver


class Pushed:
    """Who was written to while a turn ended, and what they got.

    The most frequent event of all: whoever pushes compares what he pushes with `batch`, begins
    another if it is one, and puts the receiver in; nothing else is done for each of them.
    """

    __slots__ = ("_told", "batch", "receivers")

    def __init__(self) -> None:
        self.batch: Sequence[Message] = []
        self.receivers: list[Receiver] = []
        self._told: list[tuple[Sequence[Message], list[Receiver]]] = []

    def begin(self, batch: "Sequence[Message]") -> None:
        """The next receivers get this, which must not change any more."""
        if self.receivers:
            self._told.append((self.batch, self.receivers))
            self.receivers = []
        self.batch = batch

    def take(self) -> "list[tuple[Sequence[Message], list[Receiver]]]":
        """Batches, and who got each of them; the turn has ended."""
        self.begin([])
        told, self._told = self._told, []
        return told


class Witness(Protocol):
    """Writes down what passes; there is none where nobody keeps a journal.

    What changes the store is written down with the change, by the `Recorder`: of a durable
    receiver nothing need be told that is not about failures.
    """

    # Events that are in no frame, and frames that went before everybody had read them.
    dropped: int
    unread: int

    pushed: Pushed

    def turn_over(self) -> None:
        """A turn ends in which somebody was told something."""
        ...

    def beat(self, now: float) -> None:
        """A tenth of a second has passed."""
        ...

    def accepted(self, message: "Message", copies: int) -> None:
        """So many receivers are to get it that do not have it in the store."""
        ...

    def replayed(self, key: str, message: "Message", letter: int) -> None:
        """The dead letter is a message again: one copy more, for the session of this key."""
        ...

    # The three that are told most often, with one message at least.

    def handed(self, receiver: "Receiver", messages: "Sequence[Message]", /) -> None:
        """In its hands for the first time."""
        ...

    def written(self, receiver: "Receiver", messages: "Sequence[Message]", /) -> None:
        """It was written to, and nobody will say more of that."""
        ...

    def acked(self, receiver: "Receiver", messages: "Sequence[Message]", /) -> None:
        """It has taken these."""
        ...

    def handed_again(self, receiver: "Receiver", entries: "Iterable[Entry]") -> None:
        """In its hands, some of them not for the first time."""
        ...

    def refused(self, receiver: "Receiver", entries: "Iterable[Entry]", code: "ErrorCode") -> None:
        """Deliveries failed; what becomes of the entries is told besides."""
        ...

    def returned(self, receiver: "Receiver", entries: "Iterable[Entry]") -> None:
        """Out of its hands, undecided."""
        ...

    def expired(
        self, receiver: "Receiver", messages: "Sequence[Message]", *, is_kept: bool
    ) -> None:
        """They have outlived their time; if they are kept, the store is about to be told, too."""
        ...

    def discarded(
        self,
        receiver: "Receiver",
        messages: "Sequence[Message]",
        reason: "Reason",
        *,
        is_kept: bool,
    ) -> None:
        """Nobody will get them, as agreed; if they are kept, as above."""
        ...

    def session(self, receiver: "Receiver", what: str) -> None:
        """A session began, ended, or changed its client."""
        ...

    def dispatcher(self, receiver: "Receiver", state: "State") -> None:
        """More or less is known of the receiver than before."""
        ...

    def held(self, who: str, *, receiver: str | None = None, channel: str | None = None) -> None:
        """A queue, or a channel, does not flow until it is released."""
        ...

    def released(
        self, who: str, *, receiver: str | None = None, channel: str | None = None
    ) -> None:
        """It flows again."""
        ...
