"""Identifies clients: the client id names the session, the cookie proves it."""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from math import inf
from typing import Final

from holdfast.bayeux.limits.budgets import Budgets
from holdfast.bayeux.rights import Rights
from holdfast.bayeux.session import Exchange, Session
from holdfast.bayeux.sessions.owner import SessionOwner
from holdfast.bayeux.state.session_registry import Sessions
from holdfast.bayeux.wire.caller import Speaker
from holdfast.bayeux.wire.client_ids import ClientIds
from holdfast.bayeux.wire.errors import ErrorReply
from holdfast.bayeux.wire.identity import NO_COOKIE
from holdfast.settings import Settings

# How many identities of sockets are remembered.
_NEWCOMERS: Final = 10_000
# How many seconds a newcomer has to open its socket, handshake and use the socket.
JOIN_S: Final = 5.0
# In seconds. Another process may be that late.
_LATE_S: Final = 1.0


class Identities:
    """Finds the session that a request may speak for.

    A browser sends its cookie with every request once it has one, so a browser's session always
    requires it. A program may open sockets without cookies: a session whose client has never sent a
    cookie is resumed by its id, over a socket without signs of a browser.
    """

    def __init__(
        self,
        options: Settings,
        sessions: Sessions,
        *,
        client_ids: ClientIds,
        budgets: Budgets,
        rights: Rights,
        owner: SessionOwner,
    ) -> None:
        self._client_ids, self._budgets = client_ids, budgets
        self._trusting = options.trust_client_session
        self._sessions = sessions
        self._rights = rights
        self._owner = owner
        # Identities given to sockets, with the opening times. Only the latest ones.
        self._newcomers: OrderedDict[str, float] = OrderedDict()
        # Identities of sockets in another process.
        self._strangers: OrderedDict[str, None] = OrderedDict()
        # Tells other shards of a new one, because the next request may reach any of them.
        self.tell_others: Callable[[str], None] | None = None

    def find(self, client_id: object, exchange: Exchange) -> Session | None:
        """Return the session with this id, if the request comes from its client.

        Records in the identity what the request proves, and in the exchange which browser applies.
        """
        session = self.by_id(client_id)
        if session is None or session.is_away:
            return None
        identity, speaker = session.identity, exchange.speaker
        if (
            identity.login is not None
            and speaker.caller is not identity.proved_by
            and not self._rights.still_proves(identity, speaker.caller)
        ):
            return None
        if len(speaker.browsers) > 1:
            for browser in filter(identity.has, speaker.browsers):
                exchange.browser = browser
        if identity.has(exchange.browser):
            if not (identity.needs_cookie or speaker.is_cookieless):
                self._require_cookie(session, exchange.now)
            return session
        if self._trusting or self._join(session, exchange) or _is_resumed(session, exchange):
            return session
        return None

    def choose_browser(self, exchange: Exchange) -> None:
        """Let the first identity that this deployment gave a browser apply to a handshake.

        If the request has only others, its browser gets a new one. Raises `Refused` if its address
        sends too many of these.
        """
        speaker = exchange.speaker
        if not speaker.browsers:
            return
        exchange.browser = next(filter(self._client_ids.is_browser, speaker.browsers), None)
        if exchange.browser is None:
            self._budgets.spend_invented(speaker.caller, exchange.now)

    def has_browser(self, speaker: Speaker, now: float) -> bool:
        """Return whether a new socket has an identity that this deployment gave a browser.

        Raises `RequestRefused` if its address sends too many others.
        """
        if any(map(self._client_ids.is_browser, speaker.browsers)):
            return True
        if speaker.browsers:
            self._budgets.admit_invented(speaker.caller, now)
        return False

    def why_unknown(self, client_id: object, exchange: Exchange) -> ErrorReply:
        """Return why the request speaks for no session.

        Only a client itself learns that it had a session; others learn nothing about ids.
        """
        if client_id is None:
            return ErrorReply.CLIENT_ID_MISSING
        if not (self._trusting or exchange.speaker.browsers) and self._client_ids.fits(client_id):
            return ErrorReply.COOKIE_MISSING
        if self._had_session(client_id, exchange):
            return ErrorReply.SESSION_TAKEN
        return ErrorReply.SESSION_UNKNOWN

    def _had_session(self, client_id: object, exchange: Exchange) -> bool:
        """Return whether this client had a session that another client has taken over."""
        browsers = self._sessions.replaced_of(client_id)
        if browsers is None or self._trusting:
            return browsers is not None
        if NO_COOKIE in browsers and _needs_id_alone(exchange):
            return True
        return any(each in browsers for each in exchange.speaker.browsers)

    def check_id(self, client_id: object, exchange: Exchange) -> None:
        """Charge an id that this deployment never gave. Raises `Refused` if there are too many.

        Ids of earlier releases are known as long as their sessions live.
        """
        if not (
            self.by_id(client_id) is not None
            or self._sessions.replaced_of(client_id) is not None
            or self._client_ids.fits(client_id)
        ):
            self._budgets.spend_invented(exchange.speaker.caller, exchange.now)

    def welcome(self, browser: str, opened_at: float) -> None:
        """Remember the identity given to a socket that had none."""
        self._remember(browser, opened_at)
        if self.tell_others is not None:
            self.tell_others(browser)

    def welcome_stranger(self, browser: str, opened_at: float) -> None:
        """Remember an identity that another process gave to a socket, perhaps a little late."""
        self._remember(browser, opened_at)
        self._strangers[browser] = None
        if len(self._strangers) > _NEWCOMERS:
            self._strangers.popitem(last=False)

    def _remember(self, browser: str, opened_at: float) -> None:
        self._newcomers[browser] = opened_at
        if len(self._newcomers) > _NEWCOMERS:
            self._newcomers.popitem(last=False)

    def newcomers(self, now: float) -> dict[str, float]:
        """Return the identities that may still join a session, and how old they are."""
        first = now - 2 * JOIN_S
        return {each: now - at for each, at in self._newcomers.items() if at >= first}

    def know_newcomers(self, ages: Mapping[str, float], now: float) -> None:
        """Remember the identities of an earlier process."""
        for browser, age_s in ages.items():
            self._remember(browser, now - age_s)

    def is_missed_by(self, exchange: Exchange, client_id: object) -> bool:
        """Return whether a newcomer refers to a newcomer's session that it may not join."""
        session = self.by_id(client_id)
        is_newcomers = session is not None and session.identity.newcomer_since > -inf
        return is_newcomers and exchange.browser in self._newcomers

    def by_id(self, client_id: object) -> Session | None:
        """Return the session with this id, without proof. The id may be any JSON value."""
        return self._sessions.of_client(client_id) if type(client_id) is str else None

    def _join(self, session: Session, exchange: Exchange) -> bool:
        """Let a newcomer's second identity join the session of its handshake, once."""
        identity, browser = session.identity, exchange.browser
        since = identity.newcomer_since
        opened_at = None if browser is None else self._newcomers.get(browser)
        if opened_at is None or exchange.now > since + JOIN_S:
            return False
        # This process may have handled a connect sooner than another one the socket before it.
        late_s = _LATE_S if browser in self._strangers else 0.0
        if not since - JOIN_S <= opened_at < identity.first_connect + late_s:
            return False
        identity.newcomer_since = -inf
        identity.browser_of_socket = browser
        # A socket opened before the handshake could not have its cookie; the client's next socket
        # will. Simultaneous events may count in either order.
        was_opened_before = opened_at < since
        is_cookieless = exchange.speaker.is_cookieless
        if not identity.needs_cookie and (was_opened_before or not is_cookieless):
            self._require_cookie(session, exchange.now)
        return True

    def _require_cookie(self, session: Session, now: float) -> None:
        """Require the cookie from now on, and after a restart too."""
        session.identity.needs_cookie = True
        self._owner.note(session, now)


def _is_resumed(session: Session, exchange: Exchange) -> bool:
    """Return whether the id is enough for this session."""
    return not session.identity.needs_cookie and _needs_id_alone(exchange)


def _needs_id_alone(exchange: Exchange) -> bool:
    """Return whether it is a program's: only a socket's first session, and never over HTTP."""
    pipe = exchange.pipe
    return exchange.speaker.is_cookieless and pipe is not None and pipe.session is None
