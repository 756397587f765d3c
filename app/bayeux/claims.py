"""Whose name a new client asks for, and which sessions end for it; decided when it is let in."""

from typing import TYPE_CHECKING

from app.bayeux.codec import Json
from app.bayeux.errors import BayeuxError, Refused
from app.bayeux.sessions import Session
from app.bayeux.terms import Terms
from app.delivery.error_codes import CODES

if TYPE_CHECKING:
    from app.bayeux.server import Bayeux

_NOT_AUTHORISED = CODES["user.security.authorization.notAuthorized"].text
_TOO_MANY = CODES["user.configuration.maxSession"].text


def claim(
    bayeux: "Bayeux", draft: Session, terms: Terms, handshake: Json, browser: str
) -> Session | None:
    """The session of this name, if it is there already; others end if they are to.

    Raises `Refused` before anything has happened.
    """
    known = bayeux.sessions.named(terms.key)
    others = [each for each in bayeux.sessions.names.of_subject(draft.subject) if each is not known]
    ending = others if terms.clear_sessions else []
    _check_operators(draft, ending if known is None else [known, *ending])
    if not terms.clear_sessions and known is None and len(others) >= terms.max_sessions:
        raise Refused(BayeuxError.SESSIONS_EXCEEDED, _TOO_MANY)
    if known is None and not bayeux.rights.judges_handshakes:
        _check_names(bayeux, browser, draft.caller.network)
    for other in ending:
        # Who may not take a session over may not end it either.
        number = 0 if other.terms is None else other.terms.number
        bayeux.rights.check_name(draft, other.subject, number, handshake)
    if known is None and not ending:
        bayeux.places.give()
    for other in ending:
        bayeux.end_by_server(other, f"{draft.name}, with clearSessions")
    return known


def _check_names(bayeux: "Bayeux", browser: str, network: str) -> None:
    """Where anybody may be any subject, the limit for one of them bounds nobody."""
    names, options = bayeux.sessions.names, bayeux.options
    if names.of_browser[browser] >= options.max_names_per_browser:
        raise Refused(BayeuxError.SESSIONS_EXCEEDED, _TOO_MANY, "browser")
    if names.of_network[network] >= options.max_names_per_address:
        raise Refused(BayeuxError.SESSIONS_EXCEEDED, _TOO_MANY, "address")


def _check_operators(draft: Session, wanted: list[Session]) -> None:
    """Queues of operators may hold what the system has to tell, which is not for everybody."""
    if not draft.is_operator and any(each.is_operator for each in wanted):
        raise Refused(BayeuxError.SESSION_NAME_DENIED, _NOT_AUTHORISED)
