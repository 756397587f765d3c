"""The port to the journal for what passes: told what becomes of messages, as it becomes of them."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from app.delivery.counters import Reason
    from app.delivery.dispatcher import State
    from app.delivery.entries import Entry
    from app.delivery.error_codes import ErrorCode
    from app.delivery.messages import Message
    from app.delivery.receivers import Receiver

_NS_PER_US = 1000


class Watch:
    """What the time is, and what it was when somebody looked last.

    Args:
        now_ns: Nanoseconds since 1970.
    """

    __slots__ = ("_now_ns", "us")

    def __init__(self, now_ns: "Callable[[], int]") -> None:
        self._now_ns = now_ns
        self.us = 0

    def look(self) -> int:
        """The time, in microseconds."""
        self.us = us = self.peek()
        return us

    def peek(self) -> int:
        """The time, of which nobody else need know."""
        return self._now_ns() // _NS_PER_US


class Intake(ABC):
    """What was published."""

    __slots__ = ()

    @abstractmethod
    def add(self, message: "Message", copies: int) -> None:
        """So many receivers are to get it that do not have it in the store."""


class Handouts(ABC):
    """What was given out, or acknowledged, and by whom.

    The most frequent events of all: whoever gets the same in the same turn as the one before is
    only put behind it, and has its time, if nobody has looked for a later one meanwhile. Those
    who acknowledge do not look: that nothing is acknowledged before it was given out takes no
    more than that others do.
    """

    __slots__ = ("_are_acks", "_at", "_messages", "_receivers", "_seen", "_turn", "_watch")

    def __init__(self, watch: Watch, *, are_acks: bool = False) -> None:
        self._watch = watch
        self._are_acks = are_acks
        # What was told last, to whom, in which turn and when; and what the time had been when
        # somebody looked.
        self._messages: Sequence[Message] = ()
        self._receivers: list[Receiver] = []
        self._turn = 0.0
        self._at = self._seen = 0

    def add(self, receiver: "Receiver", messages: "Sequence[Message]", turn: float) -> None:
        """It got these, one at least, which must not change any more, at this time of the loop."""
        watch = self._watch
        if turn != self._turn or self._seen != watch.us or messages != self._messages:
            self.end()
            self._at = watch.peek() if self._are_acks else watch.look()
            self._turn, self._seen = turn, watch.us
            self._messages = messages
        self._receivers.append(receiver)

    def end(self) -> None:
        """Nobody else got the last in that turn."""
        if self._receivers:
            self.tell(self._messages, self._receivers, self._at)
            self._messages, self._receivers = (), []

    @abstractmethod
    def tell(self, messages: "Sequence[Message]", receivers: "list[Receiver]", at: int) -> None:
        """These got them then."""


class Witness(Protocol):
    """Writes down what passes; there is none where nobody keeps a journal.

    What changes the store is written down with the change, by the `Recorder`: of a durable
    receiver nothing need be told that is not about failures.
    """

    # Events that are in no frame, and frames that went before everybody had read them.
    dropped: int
    unread: int

    # What was published.
    accepted: Intake
    # What is in somebody's hands for the first time.
    handed: Handouts
    # What was written, and nobody will say more of it.
    written: Handouts
    # What somebody has said it has.
    acked: Handouts

    def beat(self, now: float) -> None:
        """A tenth of a second has passed."""
        ...

    def replayed(self, key: str, message: "Message", letter: int) -> None:
        """The dead letter is a message again: one copy more, for the session of this key."""
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
