"""One request of a client, whatever carried it, and the answer that it is owed."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from app.bayeux.caller import UNKNOWN, Caller
from app.delivery.messages import Event
from app.delivery.verdicts import SILENT

if TYPE_CHECKING:
    from app.bayeux.sessions import Session


class ConnectionType(Enum):
    """The transports, by the names that Bayeux gives them."""

    LONG_POLLING = "long-polling"
    CALLBACK_POLLING = "callback-polling"
    WEBSOCKET = "websocket"


class Source(Enum):
    """What is known of the page behind a request."""

    # Its origin is known, and may use this server.
    PAGE = "page"
    # There is none: with POSTs and upgrades browsers say the origin of the page.
    PROGRAM = "program"
    # A GET that any page may have had a browser send.
    UNKNOWN = "unknown"


class Carrier(Protocol):
    """A way back to the client.

    `answer` takes all bytes at once or none: False says that the connection is closing and that
    nothing was taken. It never raises and never calls back into the core.
    """

    connection_type: ConnectionType

    def answer(self, exchange: "Exchange", messages: Sequence[Event]) -> bool:
        """Send the exchange's replies together with the messages."""
        ...

    def is_draining(self) -> bool:
        """Whether bytes that were taken are still on their way out of this process."""
        ...

    def is_lost(self) -> bool:
        """Whether the connection has ended, but not because this server was done with it.

        Then nobody knows whether bytes that were taken have arrived.
        """
        ...


class Pipe(Protocol):
    """A connection on which messages may be sent at any time; it serves one session."""

    session: "Session | None"

    def push(self, messages: Sequence[Event]) -> bool:
        """Send the messages; False if the connection is closing, and nothing was taken."""
        ...

    def is_draining(self) -> bool:
        """Whether earlier bytes are still on their way; then wait for `Bayeux.drained`."""
        ...

    def end(self) -> None:
        """The session was ended by the server: close, unless the client is about to."""
        ...


# A connect whose reply is completed when it is known what travels with it: its place among the
# replies, the reply so far, the `ext` of the request.
PendingConnect = tuple[int, dict[str, Any], Mapping[str, Any]]


class Exchange:
    """The state of one request: replies in the order of its messages, some perhaps still owed."""

    __slots__ = (
        "browser",
        "browsers",
        "caller",
        "carrier",
        "client_id",
        "connect",
        "is_aborted",
        "is_alone",
        "is_cookieless",
        "is_handshake",
        "is_superseded",
        "new_browser",
        "owed",
        "pipe",
        "progress",
        "replies",
        "said",
        "session",
        "source",
        "waits_for_store",
    )

    def __init__(
        self,
        carrier: Carrier,
        browsers: tuple[str, ...],
        pipe: Pipe | None = None,
        *,
        is_cookieless: bool = False,
        caller: Caller = UNKNOWN,
        source: Source = Source.PROGRAM,
    ) -> None:
        self.carrier = carrier
        self.source = source
        # Who sent it, as HTTP tells it.
        self.caller = caller
        # The identity of the browser: what its cookie says, or what its socket was given. Other
        # hosts of the domain can set such a cookie, too: of several, the one that fits counts.
        # `new_browser` is to be given to it.
        self.browsers = browsers
        self.browser = browsers[0] if browsers else None
        self.new_browser: str | None = None
        # Whether a program asks, no browser, and has brought no cookie.
        self.is_cookieless = is_cookieless
        # Set when the request came over a connection on which messages may be sent at any time.
        self.pipe = pipe
        self.session: Session | None = None
        # What the message that is being handled says of deliveries.
        self.said = SILENT
        self.replies: list[bytes] = []
        self.connect: PendingConnect | None = None
        # Replies that wait for something, and the session's client when they began to.
        self.owed = 0
        self.client_id: str | None = None
        # Whether the request has one message only; others never wait.
        self.is_alone = True
        # How far a message has come that there was no time for, as its handler remembers it.
        self.progress: Any = None
        # Nobody waits for the answer any more.
        self.is_aborted = False
        # A handshake's reply precedes the messages that may come with it.
        self.is_handshake = False
        # How many changes of this request the store has yet to confirm.
        self.waits_for_store = 0
        # The answer of a held connect that was overtaken by another of the same session.
        self.is_superseded = False

    def take_progress(self) -> Any:  # noqa: ANN401 - its handler knows what it left
        """What was remembered of the message; nothing if it is new."""
        progress, self.progress = self.progress, None
        return progress

    def wait_for_store(self) -> None:
        """It is not answered before the store has what it changed."""
        self.waits_for_store += 1

    def store_has_it(self) -> None:
        """The store has one of the changes that the exchange waits for."""
        self.waits_for_store -= 1
