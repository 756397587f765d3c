"""The identity of a session's client, and its proof."""

from math import inf
from typing import TYPE_CHECKING, Final, Protocol

from holdfast.bayeux.wire.caller import Caller, Speaker
from holdfast.bayeux.wire.transports import SpeakerKind

# Among the browsers of a client: its sockets need no cookie.
NO_COOKIE: Final = ""
# The values of `Identity.role`. Operators may change things, readers may not.
OPERATOR: Final = "operator"
READER: Final = "reader"
# The role of sessions of the server itself, which no client can have.
SERVER: Final = "server"

if TYPE_CHECKING:
    from holdfast.bayeux.wire.login import Login
    from holdfast.bayeux.wire.operation import Operation


class Grants(Protocol):
    """The rights of a session's login. Changes of the rules take effect at once."""

    def allows(self, operation: "Operation", channel: str, /) -> bool:
        """Return whether the operation is allowed on the channel, or on all of a pattern."""
        ...


class Identity:
    """The client of a session. A client that takes over the session brings a new identity."""

    __slots__ = (
        "browser",
        "browser_of_socket",
        "first_connect",
        "grants",
        "is_of_page",
        "login",
        "needs_cookie",
        "newcomer_since",
        "proofs",
        "proved_by",
        "role",
        "warrant",
    )

    def __init__(self) -> None:
        self.browser: str | None = None
        # False while its client, a program, has sent no cookie: its sockets then need only the id.
        self.needs_cookie = True
        # Whether a page with a known origin made the session.
        self.is_of_page = False
        # When a new browser made its handshake without a cookie, otherwise -inf. If it opens a
        # socket at the same time, the socket gets an identity too, and the browser keeps the later
        # one.
        self.newcomer_since = -inf
        self.first_connect = inf
        self.browser_of_socket: str | None = None
        # The client's login and its rights; None if the server requires none.
        self.login: Login | None = None
        self.grants: Grants | None = None
        # The sender of the last request proved to be of this login, and the proofs of such
        # requests: digests of credentials, each with the login that it proved.
        self.proved_by: Caller | None = None
        self.proofs: tuple[tuple[bytes, Login], ...] = ()
        # The administrative role, or none. If an administration token granted it, the warrant
        # proves to a restarted server that the token was right; otherwise the login grants it.
        self.role = self.warrant = ""

    @property
    def has_role(self) -> bool:
        """Whether the client is an operator, a reader, or the server itself."""
        return self.role != ""

    @property
    def browsers(self) -> tuple[str, ...]:
        """The browsers that its requests may name, and perhaps `NO_COOKIE`."""
        known = [each for each in (self.browser, self.browser_of_socket) if each]
        return (*known,) if self.needs_cookie else (*known, NO_COOKIE)

    def shakes_hands(self, speaker: Speaker, browser: str, *, is_new: bool, now: float) -> None:
        """Record who sent the handshake. The browser is new if it had no cookie."""
        self.browser = browser
        self.newcomer_since = now if is_new else -inf
        self.needs_cookie = not speaker.is_cookieless
        self.is_of_page = speaker.kind is SpeakerKind.PAGE

    def has(self, browser: str | None) -> bool:
        """Return whether this is the client's browser."""
        return browser is not None and (
            browser == self.browser or browser == self.browser_of_socket
        )
