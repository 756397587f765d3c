"""Sessions: who is connected, under which browser, until when."""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, Protocol

from app.bayeux.caller import UNKNOWN, Caller
from app.bayeux.exchange import Carrier, ConnectionType, Exchange, Pipe
from app.bayeux.life import Input, State, step
from app.bayeux.names import Names
from app.delivery.channels import covers
from app.delivery.entries import Entry, Settling
from app.delivery.messages import Event, Message
from app.delivery.queue import CallbackQueue
from app.delivery.receivers import NOBODY, Receiver
from app.delivery.timers import Timers

if TYPE_CHECKING:
    from app.bayeux.expiry import Fuse
    from app.bayeux.extension import SessionExtension
    from app.bayeux.reauthorization import Reauthorization
    from app.bayeux.terms import Terms

_GONE, _AWAY = State.GONE, State.AWAY
_WRITTEN = Settling.WRITTEN
# How many client ids are remembered that another client has taken the session from.
_REPLACED = 10_000


class Dress(Protocol):
    """Gives the events of a batch what their receiver alone is to know of them."""

    def first(
        self, session: "Session", messages: Sequence[Message], seq: int, /
    ) -> Sequence[Event]:
        """All come for the first time, numbered from `seq` on."""
        ...

    def again(self, session: "Session", entries: Iterable[Entry], /) -> Sequence[Event]:
        """Some may have come before."""
        ...


class Session(Receiver):
    """One client: a receiver with an identity, a state and perhaps a held connect."""

    __slots__ = (
        "alarm",
        "attributes",
        "broadcast_to_publisher",
        "browser",
        "browser_of_socket",
        "caller",
        "carrier",
        "client_id",
        "connection_type",
        "created",
        "deadline",
        "deliver_only",
        "dress",
        "ends_at",
        "extensions",
        "first_connect",
        "fuse",
        "held",
        "hold_ends_at",
        "interval_s",
        "is_advised",
        "is_of_page",
        "is_resumed",
        "lazy_due",
        "may_return",
        "needs_cookie",
        "newcomer_since",
        "oneway",
        "owed_publishes",
        "pipe",
        "published",
        "quiet_until",
        "reauthorization",
        "rest_interval_s",
        "role",
        "seen_ms",
        "state",
        "terms",
        "timeout_s",
        "unfinished",
        "unsubscribed",
        "warrant",
        "when_published",
    )

    def __init__(self, client_id: str, number: int, queue: CallbackQueue) -> None:
        super().__init__(queue, number)
        self.client_id = client_id
        self.browser: str | None = None
        # Who sent the message that is being handled, or the last one that was.
        self.caller: Caller = UNKNOWN
        # False while its client, a program, has sent no cookie: then its sockets need the id alone.
        self.needs_cookie = True
        # Whether a page made it whose origin was known.
        self.is_of_page = False
        # A newcomer's handshake came without a cookie. If it opens a socket at the same time, that
        # is given an identity, too, and the browser keeps the one that comes last. Never: -inf.
        self.newcomer_since = -inf
        self.first_connect = inf
        self.browser_of_socket: str | None = None
        self.state = State.HANDSHAKEN
        self.connection_type: ConnectionType | None = None
        self.extensions: tuple[SessionExtension, ...] = ()
        self.broadcast_to_publisher = True
        # Messages travel on connect replies alone (CometD's metaConnectDeliverOnly).
        self.deliver_only = False
        # Whether it may see what the system has to tell (reader), and command it (operator).
        self.role = ""
        # What shows another life of this server that its token was right.
        self.warrant = ""
        # While its rights are asked again, it is handed nothing.
        self.reauthorization: Reauthorization | None = None
        # What was agreed on verdicts, names and retries, if anything was.
        self.terms: Terms | None = None
        self.dress: Dress | None = None
        # What extensions and services remember of this session; made when first needed.
        self.attributes: dict[str, Any] | None = None
        self.timeout_s = self.interval_s = 0.0
        self.is_advised = True
        # Given up, but not for good: its client may begin another.
        self.may_return = False
        # Whether its client has taken it over from another, or from another life of this server.
        self.is_resumed = False
        # What runs after the present connect: its own request may have asked for another interval.
        self.rest_interval_s = 0.0
        self.held: Exchange | None = None
        # Its requests that a turn had no time for, the oldest first. All else of it waits for them.
        self.unfinished: tuple[Exchange, ...] = ()
        # What took the last connect reply; as long as it drains, the session does not expire.
        self.carrier: Carrier | None = None
        self.pipe: Pipe | None = None
        # When a held connect is answered at the latest; without one, when the session expires.
        self.deadline = 0.0
        self.lazy_due = self.quiet_until = 0.0
        # Subscriptions whose messages are done when they are written; made when first needed.
        self.oneway: set[str] | None = None
        # When a named session ends that nobody comes back to, and when a holdback ends by itself;
        # never, if zero.
        self.ends_at = self.hold_ends_at = 0.0
        # When it began, in nanoseconds since 1970.
        self.created = 0
        # When its client left, in another life of this server; milliseconds since 1970.
        self.seen_ms = 0
        # Publishes of this session that the store has not answered, and what waits for them.
        self.owed_publishes = 0
        self.when_published: Callable[[], None] | None = None
        # Publishes that were accepted, subscriptions that were taken away.
        self.published = self.unsubscribed = 0
        self.alarm = 0
        # Made when first something waits whose life will end.
        self.fuse: Fuse | None = None

    @property
    def is_gone(self) -> bool:
        return self.state is _GONE

    @property
    def is_plain(self) -> bool:
        """Whether what it gets need only be written: nothing else was agreed, nothing came back."""
        queue = self.queue
        return (
            queue.settling is _WRITTEN
            and queue.count == len(queue.waiting)
            and not queue.mortals
            and self.terms is None
            and self.dispatcher is None
            and self.dress is None
            and self.reauthorization is None
        )

    @property
    def is_operator(self) -> bool:
        """Whether it may see what the system has to tell."""
        return self.role != ""

    @property
    def person(self) -> str:
        """Its subject; who told no name is known by the cookie, which many sessions may share."""
        return super().person if self.browser is None or self.subject != NOBODY else self.browser

    @property
    def has_left(self) -> bool:
        """Whether no client speaks for it."""
        return self.state is _GONE or self.state is _AWAY

    def subscription(self, channel: str) -> str | None:
        """What brings the messages of a channel here, the most exact pattern; None if nothing."""
        if channel in self.subscriptions:
            return channel
        matching = [pattern for pattern in self.subscriptions if covers(pattern, channel)]
        return max(matching, key=len, default=None)

    def advance(self, seen: Input) -> None:
        """The only way to another state."""
        self.state = step(self.state, seen)

    def is_late(self, now: float) -> bool:
        """Whether lazy messages have waited long enough."""
        return 0.0 < self.lazy_due <= now

    @property
    def is_reachable(self) -> bool:
        """Whether messages can be sent without waiting for the client."""
        return self.held is not None or (self.pipe is not None and not self.deliver_only)

    def next_due(self) -> float:
        """The earliest of this session's times."""
        due = self.deadline
        if self.lazy_due and self.lazy_due < due and self.is_reachable:
            due = self.lazy_due
        if self.quiet_until and self.quiet_until < due and self.held is not None:
            due = self.quiet_until
        if self.terms is not None or self.dispatcher is not None:
            due = self._next_of_delivery(due)
        return due

    def _next_of_delivery(self, due: float) -> float:
        """When the dispatcher, or a receiver that owes a verdict, must be looked at."""
        verdict_due = self.queue.first_due()
        if verdict_due and verdict_due < due:
            due = verdict_due
        if self.ends_at and self.ends_at < due:
            due = self.ends_at
        if self.hold_ends_at and self.hold_ends_at < due:
            due = self.hold_ends_at
        dispatcher = self.dispatcher
        if dispatcher is not None and dispatcher.deadline is not None and dispatcher.deadline < due:
            due = dispatcher.deadline
        return due


class Sessions:
    """All sessions of this server, and how many connects each browser has held."""

    def __init__(self, new_id: Callable[[], str], *, first: int) -> None:
        self._new_id = new_id
        self._by_id: dict[str, Session] = {}
        self.names = Names()
        self._replaced: OrderedDict[str, None] = OrderedDict()
        # How many connects each browser has held.
        self.held_by_browser: dict[str, int] = {}
        # Numbers are names of sessions in what outlives this process: they must not come again.
        self._drafted = first
        self.created = 0
        self.timers: Timers[Session] = Timers()
        self.ended: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Session]:
        """All of them, those that wait for their clients too."""
        return iter(self._by_id.values())

    def draft(self, queue: CallbackQueue) -> Session:
        """A session under an id that nobody can guess; it exists once it is `add`ed."""
        self._drafted += 1
        return Session(self._new_id(), self._drafted, queue)

    def add(self, session: Session, browser: str) -> None:
        """The session exists from now on, for this browser alone."""
        session.browser = browser
        self._by_id[session.client_id] = session
        self.created += 1

    def named(self, key: str) -> Session | None:
        """The session of a name that its client chose."""
        return self.names.get(key)

    def of_client(self, client_id: str | None) -> Session | None:
        """The session of an id, whoever asks; not for what a client says."""
        return None if client_id is None else self._by_id.get(client_id)

    def name(self, session: Session, key: str) -> None:
        """The session can be found, and taken over, by this name."""
        session.go_by(key)
        self.names.add(session)

    def rename(self, session: Session, client_id: str, browser: str | None) -> None:
        """Another client speaks for the session from now on; the old one is told to give up."""
        del self._by_id[session.client_id]
        self._replaced[session.client_id] = None
        if len(self._replaced) > _REPLACED:
            self._replaced.popitem(last=False)
        session.client_id = client_id
        session.browser, session.browser_of_socket = browser, None
        session.newcomer_since, session.first_connect = -inf, inf
        self._by_id[client_id] = session

    def was_replaced(self, client_id: object) -> bool:
        """Whether another client has taken the session of this one."""
        return type(client_id) is str and client_id in self._replaced

    def remove(self, session: Session, seen: Input) -> None:
        """The session ends."""
        session.advance(seen)
        del self._by_id[session.client_id]
        self.names.remove(session)
        self.timers.drop(session)
        self.ended[seen.value] += 1

    def hold(self, session: Session, exchange: Exchange) -> None:
        """The session's connect is kept until there is something to say."""
        session.held = exchange
        browser = exchange.browser
        if browser is not None and exchange.pipe is None:
            held = self.held_by_browser
            held[browser] = held.get(browser, 0) + 1

    def unhold(self, session: Session, exchange: Exchange) -> None:
        """The session's held connect is no longer held."""
        session.held = None
        browser = exchange.browser
        if browser is not None and exchange.pipe is None:
            held = self.held_by_browser.pop(browser) - 1
            if held:
                self.held_by_browser[browser] = held
