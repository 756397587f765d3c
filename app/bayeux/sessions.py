"""Sessions: who is connected, under which browser, until when."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from app.bayeux.exchange import Carrier, ConnectionType, Exchange, Pipe
from app.bayeux.life import Input, State, step
from app.delivery.queue import CallbackQueue
from app.delivery.receivers import Receiver
from app.delivery.timers import Timers

if TYPE_CHECKING:
    from app.bayeux.extension_chain import SessionExtension


class Session(Receiver):
    """One client: a receiver with an identity, a state and perhaps a held connect."""

    __slots__ = (
        "__weakref__",
        "alarm",
        "attributes",
        "broadcast_to_publisher",
        "browser",
        "browser_of_socket",
        "carrier",
        "claimable_until",
        "client_id",
        "connection_type",
        "deadline",
        "deliver_only",
        "extensions",
        "held",
        "interval_s",
        "is_advised",
        "lazy_due",
        "pipe",
        "quiet_until",
        "rest_interval_s",
        "state",
        "timeout_s",
    )

    def __init__(self, client_id: str, number: int, queue: CallbackQueue) -> None:
        super().__init__(queue, number)
        self.client_id = client_id
        self.browser: str | None = None
        # A newcomer's handshake came without a cookie. If it opens a socket at the same time, that
        # has been given an identity too, and nobody knows which of them the browser keeps.
        self.claimable_until = 0.0
        self.browser_of_socket: str | None = None
        self.state = State.HANDSHAKEN
        self.connection_type: ConnectionType | None = None
        self.extensions: tuple[SessionExtension, ...] = ()
        self.broadcast_to_publisher = True
        # Messages travel on connect replies alone (CometD's metaConnectDeliverOnly).
        self.deliver_only = False
        # What extensions and services remember of this session; made when first needed.
        self.attributes: dict[str, Any] | None = None
        self.timeout_s = 0.0
        self.interval_s = 0.0
        self.is_advised = True
        # What runs after the present connect: its own request may have asked for another interval.
        self.rest_interval_s = 0.0
        self.held: Exchange | None = None
        # What took the last connect reply; as long as it drains, the session does not expire.
        self.carrier: Carrier | None = None
        self.pipe: Pipe | None = None
        # When a held connect is answered at the latest; without one, when the session expires.
        self.deadline = 0.0
        self.lazy_due = 0.0
        self.quiet_until = 0.0
        self.alarm = 0

    @property
    def is_gone(self) -> bool:
        return self.state is State.GONE

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
        return due


class Sessions:
    """All sessions of this server, and how many connects each browser has held."""

    def __init__(self, new_id: Callable[[], str], *, trusting: bool) -> None:
        self._new_id = new_id
        # Whether an id is enough to be taken for its session's client.
        self._trusting = trusting
        self._by_id: dict[str, Session] = {}
        self._held_by_browser: dict[str, int] = {}
        self._drafted = 0
        self.created = 0
        self.timers: Timers[Session] = Timers()
        self.ended: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Session]:
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

    def find(self, client_id: object, browser: str | None) -> Session | None:
        """The session of this id, if it was made by the browser that asks now."""
        session = self._by_id.get(client_id) if type(client_id) is str else None
        if session is None or self._trusting:
            return session
        if browser is not None and browser in (session.browser, session.browser_of_socket):
            return session
        return None

    def claim(self, client_id: object, browser: str, now: float) -> Session | None:
        """A newcomer's socket takes the session of its handshake, once, before any connect."""
        session = self._by_id.get(client_id) if type(client_id) is str else None
        if session is None or now > session.claimable_until:
            return None
        if session.state is not State.HANDSHAKEN:
            return None
        session.claimable_until = 0.0
        session.browser_of_socket = browser
        return session

    def remove(self, session: Session, seen: Input) -> None:
        """The session ends."""
        session.advance(seen)
        del self._by_id[session.client_id]
        self.timers.drop(session)
        self.ended[seen.value] += 1

    def hold(self, session: Session, exchange: Exchange) -> None:
        """The session's connect is kept until there is something to say."""
        session.held = exchange
        browser = exchange.browser
        if browser is not None and exchange.pipe is None:
            self._held_by_browser[browser] = self._held_by_browser.get(browser, 0) + 1

    def unhold(self, session: Session, exchange: Exchange) -> None:
        """The session's held connect is no longer held."""
        session.held = None
        browser = exchange.browser
        if browser is not None and exchange.pipe is None:
            held = self._held_by_browser.pop(browser) - 1
            if held:
                self._held_by_browser[browser] = held

    def held_by(self, browser: str) -> int:
        """How many connects this browser has held."""
        return self._held_by_browser.get(browser, 0)
