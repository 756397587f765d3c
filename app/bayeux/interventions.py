"""What operators may do to living sessions."""

from dataclasses import replace
from typing import TYPE_CHECKING

from app.bayeux.grammar import ILLEGAL, CommandRefused
from app.bayeux.sessions import Session
from app.bayeux.terms import Terms, TermsInvalid
from app.delivery import error_codes
from app.delivery.counters import Reason

if TYPE_CHECKING:
    from app.bayeux.server import Bayeux


def kill(bayeux: "Bayeux", session: Session, who: str) -> None:
    """The session ends, and what is in its queue becomes dead letters."""
    bayeux.give_up(session, error_codes.GIVEN_UP, f"ended by {who}", by=who)


def set_timeout(bayeux: "Bayeux", session: Session, timeout_ms: int) -> None:
    """Wait that long for a client that does not come back; 0 is for ever."""
    if session.terms is None:
        raise CommandRefused(ILLEGAL, "this session has agreed on no timeout")
    terms = replace(session.terms, timeout=timeout_ms)
    try:
        Terms.of(terms.to_json())
    except TermsInvalid:
        raise CommandRefused(ILLEGAL, "so long a timeout cannot be agreed on") from None
    session.terms = terms
    refresh(bayeux, session)
    bayeux.ownership.note(session)


def refresh(bayeux: "Bayeux", session: Session) -> None:
    """Its time begins anew."""
    if session.deadline == float("inf"):
        bayeux.clock.lie(session)
    else:
        bayeux.clock.touch(session)


def remove_first(bayeux: "Bayeux", session: Session, count: int) -> int:
    """Discard the first entries; how many there were."""
    gone = session.queue.take_first(count)
    bayeux.exits.discarded(session, gone, Reason.CLEARED)
    return len(gone)
