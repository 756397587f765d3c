"""Who writes the journal: told by the core what happens, in the core's own words."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from app.delivery.counters import Reason
from app.delivery.dispatcher import State
from app.delivery.entries import Entry
from app.delivery.error_codes import ErrorCode
from app.delivery.messages import Message
from app.delivery.receivers import Receiver
from app.journal.columns import Why
from app.journal.journal import Journal, Outlet
from app.journal.notes import CrowdNotes, PublishNotes
from app.journal.schema import MOST_EVENTS, Kind

if TYPE_CHECKING:
    from app.delivery.witness import Handouts, Intake


class Clerk(Journal):
    """A `Witness`."""

    __slots__ = ("accepted", "acked", "handed", "unread", "why", "written")

    def __init__(self, node: str, outlet: Outlet, *, now: float, now_ns: Callable[[], int]) -> None:
        super().__init__(node, outlet, now=now, now_ns=now_ns)
        # Frames that went before everybody had read them.
        self.unread = 0
        # Of entries that the store is about to settle, if they were not acknowledged: the reason
        # of a discard; without one, that they expired.
        self.why: dict[tuple[str, int], Why] = {}
        self.accepted: Intake = PublishNotes(self)
        self.handed: Handouts = CrowdNotes(self, self.watch, Kind.HANDED, 1)
        self.written: Handouts = CrowdNotes(self, self.watch, Kind.WRITTEN, 1)
        self.acked: Handouts = CrowdNotes(self, self.watch, Kind.ACKED)

    def beat(self, now: float) -> None:
        # Messages are not kept in memory for long.
        self._end_rows()
        super().beat(now)

    def flush(self, now: float) -> None:
        self._end_rows()
        super().flush(now)

    def _relieve(self) -> None:
        """One turn of the loop may bring more than a frame may have."""
        if self.count >= MOST_EVENTS // 2:
            self._end_rows()
            self.take_in()
            self._leave()

    def _end_rows(self) -> None:
        self.handed.end()
        self.written.end()
        self.acked.end()

    def replayed(self, key: str, message: Message, letter: int) -> None:
        at, generation = self.now_us(), message.generation
        self.explained(Kind.REPLAYED, message, key, at, letter=letter, generation=generation)

    def handed_again(self, receiver: Receiver, entries: Iterable[Entry]) -> None:
        if not receiver.is_durable:
            at = self.now_us()
            for entry in entries:
                kind = Kind.HANDED if entry.attempts == 1 else Kind.REDELIVERED
                self.delivered(kind, (entry.message,), receiver.key, at, entry.attempts)

    def refused(self, receiver: Receiver, entries: Iterable[Entry], code: ErrorCode) -> None:
        at = self.now_us()
        for entry in entries:
            self.explained(
                Kind.REFUSED, entry.message, receiver.key, at, entry.attempts, code=code.text
            )
        self._relieve()

    def returned(self, receiver: Receiver, entries: Iterable[Entry]) -> None:
        messages = [entry.message for entry in entries]
        self.delivered(Kind.RETURNED, messages, receiver.key, self.now_us())

    def expired(self, receiver: Receiver, messages: Sequence[Message], *, is_kept: bool) -> None:
        if is_kept:
            self._remember(receiver, messages, Why())
        else:
            self.delivered(Kind.EXPIRED, messages, receiver.key, self.now_us())
            self._relieve()

    def discarded(
        self, receiver: Receiver, messages: Sequence[Message], reason: Reason, *, is_kept: bool
    ) -> None:
        if is_kept:
            self._remember(receiver, messages, Why(code=reason.value))
            return
        at = self.now_us()
        for message in messages:
            self.explained(Kind.DISCARDED, message, receiver.key, at, code=reason.value)
        self._relieve()

    def _remember(self, receiver: Receiver, messages: Sequence[Message], why: Why) -> None:
        for message in messages:
            self.why[receiver.key, message.id] = why

    def session(self, receiver: Receiver, what: str) -> None:
        at = self.now_us()
        self.changed(Kind.SESSION, at, what, name=receiver.key, number=receiver.queue.count)

    def dispatcher(self, receiver: Receiver, state: State) -> None:
        at = self.now_us()
        self.changed(Kind.DISPATCHER, at, state.value, name=receiver.key)

    def held(self, who: str, *, receiver: str | None = None, channel: str | None = None) -> None:
        self.changed(Kind.HELD, self.now_us(), who, name=receiver, channel=channel)

    def released(
        self, who: str, *, receiver: str | None = None, channel: str | None = None
    ) -> None:
        self.changed(Kind.RELEASED, self.now_us(), who, name=receiver, channel=channel)
