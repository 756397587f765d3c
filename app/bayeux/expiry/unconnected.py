"""Unconnected sessions, sorted by idle time.

A session is connected from its first `/meta/connect` until its client leaves or is lost.
"""

from collections import OrderedDict
from collections.abc import Callable

from holdfast.bayeux.session import Session
from holdfast.delivery.basics.feature_records import record_of, with_record, without_record


class _SeenEarlier:
    """The record of a restored session whose client had left."""

    __slots__ = ("ms",)

    def __init__(self, ms: int) -> None:
        self.ms = ms


class UnconnectedSessions:
    """Keeps unconnected sessions in the order in which their clients were last seen."""

    def __init__(self) -> None:
        # Sessions without a connect since their handshake, oldest first.
        self.handshaken: OrderedDict[Session, None] = OrderedDict()
        # Sessions whose client left, was lost or was replaced since the last connect; longest idle
        # first.
        self.absent: OrderedDict[Session, None] = OrderedDict()

    def __len__(self) -> int:
        """The number of unconnected sessions."""
        return len(self.handshaken) + len(self.absent)

    def __contains__(self, session: object) -> bool:
        return session in self.handshaken or session in self.absent

    def add(self, session: Session) -> None:
        """Add a new session."""
        self.handshaken[session] = None

    def hear(self, session: Session) -> None:
        """Record that the client has sent something without connecting."""
        for waiting in (self.handshaken, self.absent):
            if session in waiting:
                waiting.move_to_end(session)

    def note_absent(self, session: Session) -> None:
        """Record that the session has no client from now on."""
        self.handshaken.pop(session, None)
        self.absent[session] = None
        self.absent.move_to_end(session)

    def remove(self, session: Session) -> None:
        """Remove a session that has connected or ended."""
        self.handshaken.pop(session, None)
        self.absent.pop(session, None)

    def sort_as(self, place_of: Callable[[Session], float]) -> None:
        """Sort restored sessions as they were sorted in the earlier process."""
        self.handshaken = OrderedDict.fromkeys(sorted(self.handshaken, key=place_of))
        self.absent = OrderedDict.fromkeys(sorted(self.absent, key=place_of))

    def sort(self) -> None:
        """Sort sessions that the store returned unsorted."""
        by_age = sorted(self.absent, key=seen_earlier_ms)
        self.absent = OrderedDict.fromkeys(by_age)


def note_seen_earlier(session: Session, seen_ms: int) -> None:
    """Record when the client of a restored session was last connected, to an earlier process."""
    session.records = with_record(session.records, _SeenEarlier(seen_ms))


def forget_seen_earlier(session: Session) -> None:
    """Forget that time, because the client has been connected to this process."""
    session.records = without_record(session.records, _SeenEarlier)


def seen_earlier_ms(session: Session) -> int:
    """Return that time, or 0 if the client has been connected to this process."""
    seen = record_of(session.records, _SeenEarlier)
    return 0 if seen is None else seen.ms
