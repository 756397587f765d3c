"""Changes that operators make to living sessions."""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from holdfast.bayeux.session import Session
from holdfast.bayeux.sessions.life import SessionLife
from holdfast.bayeux.sessions.takeover import leave
from holdfast.bayeux.wire.errors import Refused
from holdfast.bayeux.wire.grammar import ILLEGAL, CommandRefused
from holdfast.bayeux.wire.terms import Terms, TermsInvalid
from holdfast.delivery.basics import error_codes
from holdfast.delivery.basics.channels import Channel, Channels, Kind
from holdfast.delivery.basics.counters import Reason


def end(life: SessionLife, session: Session, who: str, now: float) -> None:
    """End the session; its queue becomes dead letters."""
    life.ends.end_with_letters(
        session, error_codes.DELIVERY_ENDED, f"its session was ended by {who}", now, by=who
    )


def end_all(life: SessionLife, sessions: Sequence[Session], who: str, now: float) -> None:
    """End sessions one by one, over as many turns as necessary."""
    left = deque(sessions)

    def end_next(now: float) -> bool:
        if left:
            session = left.popleft()
            if not session.is_gone:
                end(life, session, who, now)
        return bool(left)

    if left:
        life.state.backlog.begin(end_next, now)


def send_away(life: SessionLife, session: Session, now: float) -> None:
    """Make the client handshake again with the same session name. The queue is kept."""
    if session.terms is None or not session.terms.is_named:
        raise CommandRefused(ILLEGAL, "no client could come back to a session without a name")
    if not session.has_left:
        leave(life, session, now, "handshake")


def set_timeout(life: SessionLife, session: Session, timeout_ms: int, now: float) -> None:
    """Set how long the session waits for its client; 0 means forever."""
    if session.terms is None:
        raise CommandRefused(ILLEGAL, "this session has no agreed timeout")
    terms = replace(session.terms, timeout=timeout_ms, is_granted=True)
    try:
        Terms.of(terms.to_json())
    except TermsInvalid:
        raise CommandRefused(ILLEGAL, "the timeout is too long for a session") from None
    session.terms = terms
    refresh(life, session, now)
    life.note(session, now)


def refresh(life: SessionLife, session: Session, now: float) -> None:
    """Restart the session timeout."""
    if session.is_absent:
        life.clock.detach(session, now)
    else:
        life.clock.touch(session, now)


def remove_first(life: SessionLife, session: Session, count: int) -> int:
    """Discard up to `count` entries, the first in delivery order. Returns how many."""
    gone = session.queue.take_first(count)
    life.undelivered.clear_out(session, gone, Reason.CLEARED)
    life.state.hub.make_ready(session)
    return len(gone)


def subscribe(life: SessionLife, session: Session, name: str, now: float) -> None:
    """Subscribe the session to a channel that its rights cover."""
    channel = _broadcast(life.state.channels, name)
    asked = {"channel": "/meta/subscribe", "subscription": channel.name}
    try:
        life.state.subscriptions.join(session, {channel.name: channel}, asked)
    except Refused as refused:
        raise CommandRefused(
            ILLEGAL, f"the session may not subscribe to this channel ({refused})"
        ) from refused
    life.note(session, now)


def unsubscribe(life: SessionLife, session: Session, name: str, now: float) -> None:
    """Remove one of the session's subscriptions."""
    channel = _broadcast(life.state.channels, name)
    if channel.name not in session.subscriptions:
        raise CommandRefused(ILLEGAL, "the session has no such subscription")
    life.state.subscriptions.lose(session, channel.name)
    life.note(session, now)


def _broadcast(channels: Channels, name: str) -> Channel:
    channel = channels.get(name)
    if channel is None or channel.kind is not Kind.BROADCAST:
        raise CommandRefused(
            ILLEGAL, "the value after the = must be a channel or a pattern for subscriptions"
        )
    return channel
