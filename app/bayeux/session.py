"""Sessions and exchanges. An exchange is a request with its replies.

They refer to each other, so they share a module.
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, Final, Protocol

from holdfast.bayeux.wire.caller import UNKNOWN, Caller, Speaker
from holdfast.bayeux.wire.codec import NO_EXT, Json
from holdfast.bayeux.wire.identity import Identity
from holdfast.bayeux.wire.receipts import Taken
from holdfast.bayeux.wire.transports import ConnectionType
from holdfast.delivery.basics.channels import covers
from holdfast.delivery.messages.batch import Batch
from holdfast.delivery.messages.entries import SettledBy
from holdfast.delivery.messages.message import Event
from holdfast.delivery.messages.verdicts import SILENT
from holdfast.delivery.queues.queue import CallbackQueue
from holdfast.delivery.queues.receivers import NOBODY, Receiver

if TYPE_CHECKING:
    from holdfast.bayeux.wire.session_hooks import SessionHooks
    from holdfast.bayeux.wire.terms import Terms

_WRITTEN: Final = SettledBy.WRITTEN


class EventDecorator(Protocol):
    """Adds fields to a batch's events that only their receiver may see."""

    def decorate(
        self, session: "Session", batch: Batch, events: Sequence[Event], /
    ) -> Sequence[Event]:
        """Return the events of the batch, in order. `events` are as the previous one left them."""
        ...


class Carrier(Protocol):
    """The way back to the client.

    `answer` takes all bytes or none. False means that the connection is closing and nothing was
    taken; a receipt, that the transport is in another process and will say so. It never raises an
    exception, and never calls back into the core.
    """

    connection_type: ConnectionType

    def answer(self, exchange: "Exchange", messages: Sequence[Event]) -> Taken:
        """Send the exchange's replies and the messages."""
        ...

    def is_draining(self) -> bool:
        """Whether bytes that were taken have not left this process yet."""
        ...

    def has_unread(self) -> bool:
        """Whether the client has sent more on this connection than has reached the core."""
        ...

    def is_lost(self) -> bool:
        """Whether the connection ended before this server was done with it.

        It is then unknown whether bytes that were taken arrived.
        """
        ...


class Pipe(Protocol):
    """A connection that can send messages at any time. It serves one session."""

    session: "Session | None"

    def push(self, messages: Sequence[Event]) -> Taken:
        """Send the messages. Returns what `Carrier.answer` does."""
        ...

    def is_draining(self) -> bool:
        """Whether earlier bytes have not left yet. If so, wait for `SessionLife.drained`."""
        ...

    def has_unread(self) -> bool:
        """Whether the client has sent more on this connection than has reached the core."""
        ...

    def end(self) -> None:
        """Close the connection of an ended session, unless the client is about to close it."""
        ...


class TurnOver(Exception):
    """The turn is over before a message was handled completely.

    Raised by code that has stored its progress in the exchange. Call it again with the same message
    in a later turn.
    """


class Exchange:
    """One request: its replies in the order of its messages. Some may be pending."""

    __slots__ = (
        "asked",
        "browser",
        "carrier",
        "client_id",
        "client_verdicts",
        "has_passed",
        "held_since",
        "is_aborted",
        "is_alone",
        "is_handshake",
        "is_superseded",
        "is_written",
        "new_browser",
        "now",
        "open_reply",
        "pending_replies",
        "pipe",
        "place",
        "progress",
        "replies",
        "replies_first",
        "session",
        "speaker",
        "waits_for_store",
    )

    def __init__(self, carrier: Carrier, speaker: Speaker, pipe: Pipe | None = None) -> None:
        self.carrier = carrier
        # The sender, as identified by HTTP.
        self.speaker = speaker
        # The browser identity that applies, if there are several. `new_browser` must be set as a
        # cookie.
        self.browser = speaker.browsers[0] if speaker.browsers else None
        self.new_browser: str | None = None
        # Set if the request arrived on a pipe.
        self.pipe = pipe
        self.session: Session | None = None
        # When the request arrived, or when its handling continued in a later turn.
        self.now = 0.0
        # The client's verdicts in the current message.
        self.client_verdicts = SILENT
        self.replies: list[bytes] = []
        # The reply to a connect or a handshake, written after its messages are handed over; its
        # reserved position among the replies, and the `ext` of its request. They are no object of
        # their own, which would give the garbage collector more work for each held connect.
        self.open_reply: dict[str, Any] | None = None
        self.is_written = False
        self.place = 0
        self.asked = NO_EXT
        # The number of pending replies, and the session's client when the first became pending;
        # also the client that a handshake created.
        self.pending_replies = 0
        self.client_id: str | None = None
        # Whether the request has a single message. Connects among others are never held.
        self.is_alone = True
        # The progress of a message whose turn is over, in the form that its handler uses; and
        # whether its verdicts are applied and the extensions have seen it.
        self.progress: Any = None
        self.has_passed = False
        # Since when it waits for the backend, or for a request that does; 0.0 if it never did.
        self.held_since = 0.0
        # The connection is lost, so the response goes nowhere.
        self.is_aborted = False
        self.is_handshake = False
        # Whether replies precede the messages that travel with them.
        self.replies_first = False
        # Whether the response must wait until the store has the changes of this request.
        self.waits_for_store = False
        # Whether a newer connect superseded this held one.
        self.is_superseded = False

    def open(self, place: int, reply: dict[str, Any], asked: Mapping[str, Any]) -> bytes:
        """Leave the reply to a connect or a handshake open, and reserve its position.

        `asked` is the `ext` of the request.
        """
        self.open_reply, self.place, self.asked = reply, place, asked
        return b""

    @property
    def has_connect(self) -> bool:
        """Whether the request has a connect that was not refused."""
        return self.open_reply is not None and not self.is_handshake

    @property
    def is_lost(self) -> bool:
        """Whether no reply can reach the client, which may have a newer connection."""
        return self.is_aborted or (self.pipe is not None and self.carrier.is_lost())

    def body_with(self, messages: Sequence[Event]) -> bytes:
        """Return messages and replies, queued messages first, as a JSON array."""
        wires = [message.wire for message in messages]
        parts = self.replies + wires if self.replies_first else wires + self.replies
        return b"[%b]" % b",".join(parts)

    def take_progress(self) -> Any:  # noqa: ANN401 - its handler knows what it left
        """Take the stored progress of a message, or None if the message is new."""
        progress, self.progress = self.progress, None
        return progress

    def store_has_it(self) -> None:
        """Record that the store has confirmed the changes."""
        self.waits_for_store = False


class Held:
    """Why a session handles no request for a while: a message of its first waits for the backend.

    It is the progress of that request.

    Args:
        look_ahead: Called with the messages behind, about which the backend may be asked already.
    """

    __slots__ = ("_exchange", "_steps", "look_ahead")

    def __init__(self, exchange: Exchange, look_ahead: Callable[[Sequence[Json]], None]) -> None:
        self._exchange = exchange
        self._steps: list[Callable[[], None]] = []
        self.look_ahead = look_ahead

    def then(self, step: Callable[[], None]) -> None:
        """Call this at the end."""
        self._steps.append(step)

    def end(self) -> None:
        """Let the session handle its requests again, in their order."""
        self._exchange.progress = None
        steps, self._steps = self._steps, []
        for step in steps:
            step()


def held_by(exchange: Exchange) -> Held | None:
    """Return what holds up the session of a request, or None."""
    session = exchange.session
    if session is None or not session.unfinished:
        return None
    progress = session.unfinished[0].progress
    return progress if isinstance(progress, Held) else None


class Session(Receiver):
    """One client: a receiver with an identity, a state and possibly a held connect."""

    __slots__ = (
        "attributes",
        "broadcast_to_publisher",
        "caller",
        "carrier",
        "client_id",
        "created",
        "deadline",
        "decorators",
        "deliver_only",
        "drops_outdated",
        "ends_at",
        "extensions",
        "held_connect",
        "identity",
        "interval_s",
        "is_advised",
        "is_resumed",
        "lazy_due",
        "pauses",
        "pipe",
        "quiet_until",
        "rest_interval_s",
        "terms",
        "timeout_s",
        "unfinished",
    )

    def __init__(self, client_id: str, number: int, queue: CallbackQueue) -> None:
        super().__init__(queue, number)
        self.client_id = client_id
        self.identity = Identity()
        # The sender of the session's latest message.
        self.caller: Caller = UNKNOWN
        self.extensions: tuple[SessionHooks, ...] = ()
        self.broadcast_to_publisher = True
        # Whether messages travel with connect replies only (CometD's metaConnectDeliverOnly).
        self.deliver_only = False
        # The number of reasons why nothing may be handed over for now. The part that adds one also
        # removes it.
        self.pauses = 0
        # The terms agreed in the handshake, if any.
        self.terms: Terms | None = None
        # Whether some of its waiting messages leave the queue when newer ones come.
        self.drops_outdated = False
        # What completes its events for it, in this order.
        self.decorators: tuple[EventDecorator, ...] = ()
        # Data of extensions and services, created when first needed.
        self.attributes: dict[str, Any] | None = None
        self.timeout_s = self.interval_s = 0.0
        self.is_advised = True
        # Whether its client took it over from another client or from an earlier process.
        self.is_resumed = False
        # The advised pause before the next connect. The current connect may have asked for another.
        self.rest_interval_s = 0.0
        self.held_connect: Exchange | None = None
        # Requests that are not completely handled, oldest first. Later requests wait for them.
        self.unfinished: tuple[Exchange, ...] = ()
        # The carrier of the last connect reply. The session does not expire while it drains.
        self.carrier: Carrier | None = None
        self.pipe: Pipe | None = None
        # When the held connect is answered at the latest or, without one, when the session expires;
        # infinite while its client is absent.
        self.deadline = 0.0
        self.lazy_due = self.quiet_until = 0.0
        # When a named session without a client ends; zero if never.
        self.ends_at = 0.0
        # When it was created, in ns since 1970.
        self.created = 0

    @property
    def is_plain(self) -> bool:
        """Whether messages only need to be written: nothing negotiated, nothing returned."""
        queue = self.queue
        return (
            queue.settling is _WRITTEN
            and queue.count == len(queue.new)
            and not self.is_durable
            and self.terms is None
            and self.dispatcher is None
            and not self.decorators
            and not self.drops_outdated
            and not self.pauses
        )

    @property
    def takes_addressed(self) -> bool:
        """Whether it takes messages, and its terms do not exclude point-to-point."""
        return self.takes_messages and (self.terms is None or self.terms.ptp)

    @property
    def person(self) -> str:
        """The subject or, without one, the cookie, which many sessions may share."""
        return self.subject if self.subject != NOBODY else self.identity.browser or self.key

    def subscription(self, channel: str) -> str | None:
        """The most specific subscription that matches a channel, or None."""
        if channel in self.subscriptions:
            return channel
        matching = [pattern for pattern in self.subscriptions if covers(pattern, channel)]
        return max(matching, key=len, default=None)

    def is_late(self, now: float) -> bool:
        """Whether lazy messages have waited long enough."""
        return 0.0 < self.lazy_due <= now

    @property
    def is_absent(self) -> bool:
        """Whether its client left or was silent for too long, and has not come back."""
        return self.deadline == inf

    @property
    def has_connection(self) -> bool:
        """Whether a connect is held or a socket is open at this moment."""
        return self.held_connect is not None or self.pipe is not None

    @property
    def is_reachable(self) -> bool:
        """Whether messages can be sent without waiting for the client."""
        return self.held_connect is not None or (self.pipe is not None and not self.deliver_only)

    def gets_next_at_once(self) -> bool:
        dispatcher = self.dispatcher
        return (
            self.held_connect is not None
            and self.deliver_only
            and not self.queue.count
            and (dispatcher is None or dispatcher.is_calm)
            and not (self.pauses or self.unfinished)
        )

    @property
    def is_heard(self) -> bool:
        """Whether everything that is known to have come from the client is handled."""
        if self.unfinished or (self.pipe is not None and self.pipe.has_unread()):
            return False
        return self.carrier is None or not self.carrier.has_unread()

    def next_due(self) -> float:
        """The earliest of this session's deadlines."""
        due = self.deadline
        if self.lazy_due and self.lazy_due < due and self.is_reachable:
            due = self.lazy_due
        if self.quiet_until and self.quiet_until < due and self.held_connect is not None:
            due = self.quiet_until
        if self.terms is not None or self.dispatcher is not None:
            due = self._next_of_delivery(due)
        return due

    def _next_of_delivery(self, due: float) -> float:
        """The earliest of `due` and the deadlines of verdicts, holds and the dispatcher."""
        verdict_due = self.queue.first_due()
        if verdict_due and verdict_due < due:
            due = verdict_due
        if self.ends_at and self.ends_at < due:
            due = self.ends_at
        dispatcher = self.dispatcher
        if dispatcher is not None:
            if dispatcher.hold_ends_at and dispatcher.hold_ends_at < due:
                due = dispatcher.hold_ends_at
            if dispatcher.deadline is not None and dispatcher.deadline < due:
                due = dispatcher.deadline
        return due
