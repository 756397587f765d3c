"""When the rights of a session changed last. What it may get after that is checked again."""

from holdfast.bayeux.session import Session
from holdfast.delivery.basics.feature_records import record_of, with_record


class _RightsChange:
    """The record of a session whose rights have changed since its handshake."""

    __slots__ = ("at",)

    def __init__(self, at: int) -> None:
        # In the numbers of message ids.
        self.at = at


def note_changed_rights(session: Session, at: int) -> None:
    """Record that the rights changed. Messages accepted before that have lower ids than `at`."""
    session.records = with_record(session.records, _RightsChange(at))


def rights_changed_at(session: Session) -> int:
    """Return when the rights changed last; zero if they never did."""
    change = record_of(session.records, _RightsChange)
    return 0 if change is None else change.at
