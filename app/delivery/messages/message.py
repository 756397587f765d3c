"""Messages: serialised once and shared by all receivers."""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.delivery.basics.node import NS_PER_MS
from holdfast.delivery.messages.storing import NO_FIELDS

if TYPE_CHECKING:
    from holdfast.delivery.basics.feature_records import Records
    from holdfast.delivery.messages.keeping import Keeping
    from holdfast.delivery.messages.storing import RequestFields

ORDINARY_PRIORITY = 5


class Event:
    """The bytes that a transport writes. A transport may cache its own form of them in `frame`."""

    __slots__ = ("frame", "wire")

    def __init__(self, wire: bytes) -> None:
        self.wire = wire
        self.frame: bytes | None = None


class ReceiverView(Protocol):
    """A receiver of a message, as the records of the message see it."""

    @property
    def key(self) -> str:
        """Its session name."""
        ...

    @property
    def subscriptions(self) -> Set[str]: ...

    @property
    def records(self) -> "Records | None": ...


class MessageRecord:
    """What one feature knows of a message.

    The core tells it what happens to the message. A feature overrides what concerns it.
    """

    __slots__ = ()

    def is_of_copies(self) -> bool:
        """Return whether copies of the message carry the record, too."""
        return True

    def counts_queues(self) -> bool:
        """Return whether it is to be told when copies of the message enter and leave queues."""
        return False

    def fields_for(self, message: "Message", receivers: Sequence[ReceiverView]) -> "RequestFields":
        """Return the fields to store together with the message for these receivers."""
        return NO_FIELDS

    def published(self, message: "Message") -> None:
        """Record that the message is about to enter its first queues."""

    def shown_to(self, message: "Message", receivers: Sequence[ReceiverView]) -> None:
        """Record that these receivers have a copy or will get one."""

    def refused_by(self, key: str, code: str, text: str) -> None:
        """Record that this receiver refused its copy, or will not get it, with this code."""

    def unanswered_by(self, key: str) -> None:
        """Record that this receiver ended without a verdict, or will not get its copy."""

    def crossed(self) -> None:
        """Record that other shards get the message, too: the log has it, or will have it next."""

    def entered_queues(self, count: int) -> None:
        """Record that this many queues have a copy, if `counts_queues`."""

    def left_queues(self, count: int) -> None:
        """Record that this many queues no longer have their copy, if `counts_queues`."""

    def entered_history(self) -> None:
        """Record that the history of the channel has the message."""

    def left_history(self) -> None:
        """Record that the history of the channel no longer has the message."""


class Message(Event):
    """One published message.

    `wire` is the complete event as JSON; it is never serialised again for a receiver. `linger_s`
    makes the message lazy: it may wait that long for other messages. Decorators cache in
    `event_start`, the journal in `journal_note`.
    """

    __slots__ = (
        "addressed",
        "channel",
        "event_start",
        "expires_ms",
        "generation",
        "id",
        "is_direct",
        "is_durable",
        "is_initial",
        "is_late",
        "journal_note",
        "keeping",
        "life_ms",
        "linger_s",
        "priority",
        "properties",
        "records",
        "sender",
    )

    def __init__(
        self,
        wire: bytes,
        *,
        id: int = 0,
        channel: str = "",
        sender: str = "",
        linger_s: float | None = None,
    ) -> None:
        self.wire = wire
        self.frame = None
        # When the server received it, in nanoseconds; increasing and unique on this node.
        self.id = id
        self.channel = channel
        # The publisher's absolute session name; empty for the server's own messages.
        self.sender = sender
        self.linger_s = linger_s
        # 0 to 9. Higher priorities are handed over first.
        self.priority = ORDINARY_PRIORITY
        self.life_ms: int | None = None
        # When its lifetime ends and it leaves the queues in which it waits, in ms since 1970; zero
        # if never.
        self.expires_ms = 0
        self.is_durable = False
        # How the history of its channel keeps it; None if it does not.
        self.keeping: Keeping | None = None
        # Whether it is a copy from the history of its channel.
        self.is_initial = False
        # Whether it was published to one receiver, regardless of subscriptions.
        self.is_direct = False
        # The subjects and sessions that it is addressed to: `joe`, `joe/1`.
        self.addressed: Sequence[str] = ()
        # Whether later messages may be queued already: it is inserted in the order of ids.
        self.is_late = False
        # Properties that the publisher added for receivers.
        self.properties: Mapping[str, Any] | None = None
        # How often it was replayed.
        self.generation = 0
        self.event_start: bytes | None = None
        self.journal_note: Any = None
        # What single features know of it; None if none of them does.
        self.records: tuple[MessageRecord, ...] | None = None

    @property
    def is_counted(self) -> bool:
        """Whether any of its records counts the queues that have it."""
        return self.records is not None and any(each.counts_queues() for each in self.records)

    @property
    def is_routed(self) -> bool:
        """Whether it was delivered because of a subscription."""
        return not (self.is_direct or self.generation)

    def is_addressed_to(self, key: str) -> bool:
        """Whether it is addressed to the session or to its subject."""
        return bool(self.addressed) and (
            key in self.addressed or key.rpartition("/")[0] in self.addressed
        )

    def is_for(self, subject: str) -> bool:
        """Whether it is addressed to the subject. A replay is for one session only."""
        return subject in self.addressed and not self.generation

    def for_other_queues(self) -> "Message":
        """Return a copy that moves to the queues of other sessions."""
        copy = self._copy()
        copy.linger_s = self.linger_s
        copy.is_direct = self.is_direct
        copy.generation = self.generation
        return copy

    def initial(self) -> "Message":
        """Return a copy for a later subscriber."""
        copy = self._copy()
        copy.keeping = self.keeping
        copy.is_initial = True
        # The original was for its destinations; this copy is for a subscriber.
        copy.addressed = ()
        return copy

    def _copy(self) -> "Message":
        copy = Message(self.wire, id=self.id, channel=self.channel, sender=self.sender)
        copy.priority = self.priority
        copy.life_ms, copy.expires_ms = self.life_ms, self.expires_ms
        copy.is_durable, copy.addressed = self.is_durable, self.addressed
        copy.properties = self.properties
        if self.records is not None:
            copy.records = tuple([each for each in self.records if each.is_of_copies()]) or None
        return copy

    def limit_life(self, life_ms: int, *, is_forced: bool) -> None:
        """Set the lifetime. If `is_forced`, the message leaves all queues when it ends."""
        self.life_ms = life_ms
        if not life_ms:
            # Volatile: only for receivers that are connected now.
            self.keeping = None
        self.expires_ms = self.end_of_life_ms() if is_forced else 0

    def end_of_life_ms(self) -> int:
        """Return when its lifetime ends, in ms since 1970; zero if it has none."""
        return 0 if self.life_ms is None else self.id // NS_PER_MS + self.life_ms

    @property
    def expiration(self) -> dict[str, int | bool] | None:
        """The lifetime that the publisher set."""
        if self.life_ms is None:
            return None
        return {"lifeTime": self.life_ms, "forceDestroy": self.expires_ms > 0}


def release(messages: "Iterable[Message]") -> None:
    """Tell the records of these messages that each left a queue."""
    for message in messages:
        if message.records is not None:
            for record in message.records:
                record.left_queues(1)
