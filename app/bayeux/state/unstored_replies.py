"""The replies of a session that wait for the store, and what waits for them.

Replies to publishes are counted apart: a session has a limited number of them, and a disconnect
takes effect after them.
"""

from collections.abc import Callable

from holdfast.bayeux.session import Session
from holdfast.delivery.basics.feature_records import record_of, with_record, without_record


class _Unstored:
    """The record of a session with such replies."""

    __slots__ = ("others", "publishes", "steps")

    def __init__(self) -> None:
        # The number of replies to publishes, and of other replies.
        self.publishes = self.others = 0
        # What to do when the publishes are stored.
        self.steps: list[Callable[[float], None]] = []


def unstored_replies(session: Session) -> int:
    """Return how many replies wait, without those to publishes."""
    found = record_of(session.records, _Unstored)
    return 0 if found is None else found.others


def unstored_publishes(session: Session) -> int:
    """Return how many publishes wait for their replies."""
    found = record_of(session.records, _Unstored)
    return 0 if found is None else found.publishes


def owes_reply(session: Session) -> bool:
    """Return whether the client waits for any reply that waits for the store."""
    found = record_of(session.records, _Unstored)
    return found is not None and found.others + found.publishes > 0


def begin_reply(session: Session) -> None:
    """Count a reply that begins to wait."""
    _unstored(session).others += 1


def end_reply(session: Session) -> None:
    """Count a reply that no longer waits."""
    found = _unstored(session)
    found.others -= 1
    _forget_if_over(session, found)


def begin_publish(session: Session) -> None:
    """Count a publish that begins to wait."""
    _unstored(session).publishes += 1


def end_publish(session: Session) -> None:
    """Count a publish that no longer waits. Call `publishes_stored` when its reply is complete."""
    _unstored(session).publishes -= 1


def publishes_stored(session: Session, now: float) -> None:
    """Take the steps that wait for the session's publishes, if none waits any longer."""
    found = record_of(session.records, _Unstored)
    if found is not None and not found.publishes:
        steps, found.steps = found.steps, []
        _forget_if_over(session, found)
        for step in steps:
            step(now)


def when_publishes_stored(session: Session, step: Callable[[float], None]) -> None:
    """Take the step, with the time, when all publishes that wait now are stored."""
    _unstored(session).steps.append(step)


def _unstored(session: Session) -> _Unstored:
    """Return the session's record, which may be new."""
    found = record_of(session.records, _Unstored)
    if found is None:
        found = _Unstored()
        session.records = with_record(session.records, found)
    return found


def _forget_if_over(session: Session, unstored: _Unstored) -> None:
    """Remove the record of a session for which nothing waits."""
    if not (unstored.publishes or unstored.others or unstored.steps):
        session.records = without_record(session.records, _Unstored)
