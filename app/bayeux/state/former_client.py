"""What a session knows of the client that had it before another one took it over."""

from typing import Final

from holdfast.bayeux.session import Session
from holdfast.delivery.basics.feature_records import record_of, with_record

_NONE: Final[tuple[str, ...]] = ()


class FormerClient:
    """The record of a session that was taken over. Most sessions have none."""

    __slots__ = ("known_by",)

    def __init__(self, known_by: tuple[str, ...]) -> None:
        # Its id, then its browsers.
        self.known_by: Final = known_by


def former_client(session: Session) -> tuple[str, ...]:
    """Return the id of the former client, then its browsers; nothing if there was none."""
    record = record_of(session.records, FormerClient)
    return _NONE if record is None else record.known_by


def remember_former_client(session: Session, known_by: tuple[str, ...]) -> None:
    """Remember the former client in place of an earlier one."""
    session.records = with_record(session.records, FormerClient(known_by))
