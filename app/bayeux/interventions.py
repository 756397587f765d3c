"""What operators may do to living sessions."""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from app.bayeux.errors import Refused
from app.bayeux.grammar import ILLEGAL, CommandRefused
from app.bayeux.sessions import Session
from app.bayeux.subscriptions import join, part
from app.bayeux.takeover import leave
from app.bayeux.terms import Terms, TermsInvalid
from app.delivery import error_codes
from app.delivery.channels import Channel, Kind
from app.delivery.counters import Reason

if TYPE_CHECKING:
    from app.bayeux.server import Bayeux


def kill(bayeux: "Bayeux", session: Session, who: str) -> None:
    """The session ends, and what is in its queue becomes dead letters."""
    bayeux.give_up(session, error_codes.GIVEN_UP, f"its session was ended by {who}", by=who)


def kill_all(bayeux: "Bayeux", sessions: Sequence[Session], who: str) -> None:
    """They end one after the other, in as many turns as that takes."""
    left = deque(sessions)

    def kill_next() -> bool:
        session = left.popleft()
        if not session.is_gone:
            kill(bayeux, session, who)
        return bool(left)

    bayeux.backlog.begin(kill_next)


def send_away(bayeux: "Bayeux", session: Session) -> None:
    """Its client has to handshake again, by the same name; until then everything waits."""
    if session.terms is None or not session.terms.is_named:
        raise CommandRefused(ILLEGAL, "nobody could come back to a session without a name")
    if not session.has_left:
        leave(bayeux, session, "handshake")


def set_timeout(bayeux: "Bayeux", session: Session, timeout_ms: int) -> None:
    """Wait that long for a client that does not come back; 0 is for ever."""
    if session.terms is None:
        raise CommandRefused(ILLEGAL, "this session has agreed on no timeout")
    terms = replace(session.terms, timeout=timeout_ms, is_granted=True)
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
    bayeux.hub.make_ready(session)
    return len(gone)


def subscribe(bayeux: "Bayeux", session: Session, name: str) -> None:
    """Subscribe in its name, to what it may subscribe to itself."""
    channel = _broadcast(bayeux, name)
    asked = {"channel": "/meta/subscribe", "subscription": channel.name}
    try:
        join(bayeux, session, {channel.name: channel}, asked)
    except Refused as refused:
        raise CommandRefused(ILLEGAL, f"it may not subscribe to that ({refused})") from refused
    bayeux.ownership.note(session)


def unsubscribe(bayeux: "Bayeux", session: Session, name: str) -> None:
    """Take one of its subscriptions away."""
    channel = _broadcast(bayeux, name)
    if channel.name not in session.subscriptions:
        raise CommandRefused(ILLEGAL, "it has no such subscription")
    part(bayeux, session, channel.name)
    bayeux.ownership.note(session)


def _broadcast(bayeux: "Bayeux", name: str) -> Channel:
    channel = bayeux.channels.get(name)
    if channel is None or channel.kind is not Kind.BROADCAST:
        raise CommandRefused(ILLEGAL, "behind the = stands a channel that can be subscribed to")
    return channel
