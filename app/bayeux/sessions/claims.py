"""Claims of session names in handshakes, and the sessions that end because of them."""

from holdfast.bayeux.limits.quotas import Quotas
from holdfast.bayeux.rights import Rights
from holdfast.bayeux.session import Session
from holdfast.bayeux.sessions.ends import SessionEnds
from holdfast.bayeux.sessions.slots import SessionSlots
from holdfast.bayeux.state.session_registry import Sessions
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.bayeux.wire.terms import Terms
from holdfast.delivery.basics.error_codes import CODES
from holdfast.delivery.shared_queues.unclaimed_names import is_unclaimed
from holdfast.settings import Settings

_NOT_AUTHORISED = CODES["user.security.authorization.notAuthorized"].text
_TOO_MANY = CODES["user.configuration.maxSession"].text


class Claims:
    """Decides on claims, and ends other sessions where a claim requires it."""

    def __init__(
        self,
        options: Settings,
        sessions: Sessions,
        *,
        shards: int,
        rights: Rights,
        quotas: Quotas,
        ends: SessionEnds,
        slots: SessionSlots,
    ) -> None:
        self._options = options
        self._shards = shards
        self._sessions = sessions
        self._rights = rights
        self._quotas = quotas
        self._ends = ends
        self._slots = slots

    def claim(self, draft: Session, terms: Terms, handshake: Json, now: float) -> Session | None:
        """Return the existing session of this name, if any; end others if the client asks for it.

        Raises `Refused` before any change.
        """
        sessions = self._sessions
        known = sessions.named(terms.key)
        others = [each for each in sessions.names.of_subject(draft.subject) if each is not known]
        ending = others if terms.clear_sessions else []
        # The first client of an unclaimed session needs as much room as a new session would.
        is_first = known is None or is_unclaimed(known)
        claimed = [each for each in others if not is_unclaimed(each)]
        _check_operators(draft, ending if known is None else [known, *ending])
        if not terms.clear_sessions and is_first and len(claimed) >= terms.max_sessions:
            raise Refused(ErrorReply.SESSIONS_EXCEEDED, _TOO_MANY)
        if is_first and not self._rights.judges_handshakes:
            self._check_names(draft)
        for other in ending:
            # A client that may not take over a session may not end it either.
            number = 0 if other.terms is None else other.terms.number
            self._rights.check_name(draft, other.subject, number, handshake)
        if is_first and not ending:
            self._quotas.check_session(draft)
        if known is None and not ending:
            self._slots.give(now)
        for other in ending:
            self._ends.end_by_server(other, now, f"{draft.name}, with clearSessions")
        return known

    def _check_names(self, draft: Session) -> None:
        """Also limit names per browser and address, because anyone may use any subject."""
        names, options = self._sessions.names, self._options
        browser, network = draft.identity.browser, draft.caller.network
        if browser is not None and names.of_browser[browser] >= options.max_names_per_browser:
            raise Refused(ErrorReply.SESSIONS_EXCEEDED, _TOO_MANY, "browser")
        if names.of_network[network] * self._shards >= options.max_names_per_address:
            raise Refused(ErrorReply.SESSIONS_EXCEEDED, _TOO_MANY, "address")


def _check_operators(draft: Session, wanted: list[Session]) -> None:
    """Protect operators' sessions, whose queues may contain system events."""
    if not draft.identity.has_role and any(each.identity.has_role for each in wanted):
        raise Refused(ErrorReply.SESSION_NAME_DENIED, _NOT_AUTHORISED)
