"""Whose client a request comes from: the session's id says which, its cookie proves it."""

from collections import OrderedDict
from math import inf
from typing import TYPE_CHECKING

from app.bayeux.exchange import Exchange
from app.bayeux.life import State
from app.bayeux.sessions import Session

if TYPE_CHECKING:
    from app.bayeux.server import Bayeux

_AWAY = State.AWAY
# How many identities of sockets are remembered.
_NEWCOMERS = 10_000
# So close to each other a newcomer opens its socket, handshakes and uses the socket.
JOIN_S = 5.0


class Identities:
    """Finds the session that a client may speak for.

    A browser sends its cookie with everything once it has one, so a session of a browser needs it
    always. A program may send none with its sockets: a session whose client has never sent a cookie
    is resumed by its id, over a socket that shows no sign of a browser.
    """

    def __init__(self, bayeux: "Bayeux") -> None:
        self._bayeux = bayeux
        self._trusting = bayeux.options.trust_client_session
        # Identities that were given to sockets, and when those were opened; the last ones only.
        self._newcomers: OrderedDict[str, float] = OrderedDict()

    def find(self, client_id: object, exchange: Exchange) -> Session | None:
        """The session of this id, if the request comes from its client."""
        session = self.said(client_id)
        if session is None or session.state is _AWAY:
            return None
        if len(exchange.browsers) > 1:
            _choose_browser(exchange, session)
        browser = exchange.browser
        if browser is not None and (
            browser == session.browser or browser == session.browser_of_socket
        ):
            if not (session.needs_cookie or exchange.is_cookieless):
                self._require_cookie(session)
            return session
        if self._trusting or self._join(session, exchange) or _is_resumed(session, exchange):
            return session
        return None

    def welcome(self, browser: str, opened_at: float) -> None:
        """A socket came without an identity and is given this one."""
        self._newcomers[browser] = opened_at
        if len(self._newcomers) > _NEWCOMERS:
            self._newcomers.popitem(last=False)

    def is_missed_by(self, exchange: Exchange, client_id: object) -> bool:
        """Whether a newcomer asks for a newcomer's session, and may not join it."""
        session = self.said(client_id)
        is_newcomers = session is not None and session.newcomer_since > -inf
        return is_newcomers and exchange.browser in self._newcomers

    def said(self, client_id: object) -> Session | None:
        """The session of this id, whoever says it; what a client says may be anything."""
        return self._bayeux.sessions.of_client(client_id) if type(client_id) is str else None

    def _join(self, session: Session, exchange: Exchange) -> bool:
        """A newcomer's other identity becomes one of the session that it handshook for, once."""
        browser, since = exchange.browser, session.newcomer_since
        opened_at = None if browser is None else self._newcomers.get(browser)
        if opened_at is None or self._bayeux.now > since + JOIN_S:
            return False
        if not since - JOIN_S <= opened_at < session.first_connect:
            return False
        session.newcomer_since = -inf
        session.browser_of_socket = browser
        # A socket that was opened before the handshake could not have its cookie; the client's next
        # one will. What happened at the same moment may have happened one after the other.
        was_opened_before = opened_at < since
        if not session.needs_cookie and (was_opened_before or not exchange.is_cookieless):
            self._require_cookie(session)
        return True

    def _require_cookie(self, session: Session) -> None:
        """From now on, also in the next life of this server."""
        session.needs_cookie = True
        self._bayeux.ownership.note(session)


def _choose_browser(exchange: Exchange, session: Session) -> None:
    """Of several identities the one that the session belongs to counts, if it is among them."""
    for browser in exchange.browsers:
        if browser == session.browser or browser == session.browser_of_socket:
            exchange.browser = browser


def _is_resumed(session: Session, exchange: Exchange) -> bool:
    """Whether the id is enough: only for a socket's first session, and never over HTTP."""
    pipe = exchange.pipe
    if session.needs_cookie or not exchange.is_cookieless:
        return False
    return pipe is not None and pipe.session is None
