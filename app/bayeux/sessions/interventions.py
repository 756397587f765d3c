"""Changes that operators make to living sessions."""

from collections import deque
from collections.abc import Sequence

from holdfast.bayeux.session import Session
from holdfast.bayeux.sessions.life import SessionLife
from holdfast.delivery.basics import error_codes


def end(life: SessionLife, session: Session, who: str, now: float) -> None:
    """End the session; its queue becomes dead letters."""
    life.ends.end_with_letters(
        session, error_codes.DELIVERY_ENDED, text=f"its session was ended by {who}", now=now, by=who
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
