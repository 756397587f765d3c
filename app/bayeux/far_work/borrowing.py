"""Work of another shard that sessions of this one do.

This shard tells the other one which sessions take its work, and what becomes of it: in parts, which
follow each other without waiting. If one of them was not taken, it begins again with everything.
What became of work is told until the other shard has heard it.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from holdfast.bayeux.far_work.work_calls import (
    BACK,
    DONE,
    END,
    GONE,
    HAS,
    TAKES,
    TOLD,
    Row,
    Taken,
    Told,
    is_outcome,
    parts_of,
    size_of_row,
)
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.calls import Answer, said_by
from holdfast.bayeux.state.server_state import ServerState
from holdfast.delivery.codec.attributes import row_of_attempts, rows_of_refusals
from holdfast.delivery.messages.message import Message
from holdfast.delivery.ports.homes import HomesPort
from holdfast.delivery.requests.responders import silent_on
from holdfast.delivery.shared_queues.work import Borrowed, borrowed_of

# How much work of one shard a session gets at once.
MOST_AT_ONCE: Final = 100
# The least time between two beginnings.
_PAUSE_S: Final = 0.5
# After this time out of contact, the other shard may have given work to others that it lent before.
_DOUBT_S: Final = 2.0


class Copy:
    """A copy of work of another shard, in the queue of a session here."""

    __slots__ = ("channel", "id", "record", "session")

    def __init__(self, message: Message, record: Borrowed, session: Session) -> None:
        self.id, self.channel = message.id, message.channel
        self.record = record
        self.session = session

    @property
    def row(self) -> Row:
        """What says that it is here."""
        return [HAS, self.id, self.channel, self.record.loan_id, self.session.key]


class Borrows:
    """The work of one other shard that sessions of this one do."""

    def __init__(self, state: ServerState, homes: HomesPort, shard: int) -> None:
        self._state = state
        self._homes = homes
        self.shard = shard
        # The number of this beginning, 0 before the first one, and of the next part.
        self._series = self._part = 0
        # The sessions that take work, with what says so.
        self.takers: dict[str, Row] = {}
        self.copies: dict[int, Copy] = {}
        # What is to be told.
        self._rows: list[Row] = []
        # What became of work, by the part that tells it, until that is taken.
        self._unheard: dict[int, list[Row]] = {}
        # Whether it is to begin, and from when on that may be.
        self._is_due, self._next_at = True, 0.0
        # When calls could be sent last; None before the first time. The server's clock stands
        # still while its process does, and the other shard does not.
        self._contact_at: float | None = None
        # The part that ends the last beginning, and whether the other shard has taken it: then it
        # has not given to others what is here.
        self._last_part, self._is_sure = 0, True

    @property
    def is_settled(self) -> bool:
        """Whether everything is told, or on its way."""
        return not self._rows or self._is_due

    # What there is to tell

    def takes(self, session: Session, patterns: Sequence[str]) -> None:
        """Note that a session takes work of channels that match these patterns."""
        entries, _ = session.queue.room_left()
        most = min(MOST_AT_ONCE, max(1, entries + session.queue.count))
        silent = silent_on(session) & {*patterns}
        row = [TAKES, session.key, session.number, most, sorted(patterns), sorted(silent)]
        if self.takers.get(session.key) != row:
            self.takers[session.key] = row
            self._rows.append(row)

    def has_room(self, session: Session) -> None:
        """Note that the queue of a session has room again."""
        row = self.takers.get(session.key)
        if row is not None:
            self._rows.append(row)

    def takes_none(self, key: str) -> None:
        """Note that a session takes no more work."""
        if self.takers.pop(key, None) is not None:
            self._rows.append([GONE, key])

    def enter(self, message: Message, record: Borrowed, session: Session) -> None:
        """Note that a copy is in the queue of a session."""
        self.copies[record.loan_id] = Copy(message, record, session)

    def done(self, record: Borrowed) -> None:
        """Note that a copy has left the queue, and what it became counts here."""
        copy = self.copies.pop(record.loan_id)
        self._rows.append([DONE, copy.id, copy.channel, record.loan_id])

    def back(self, message: Message, loan_id: int, key: str, *, is_full: bool = False) -> None:
        """Note that work returns to its shard, with what was attempted here."""
        self.copies.pop(loan_id, None)
        attempts, refusals = row_of_attempts(message), rows_of_refusals(message)
        about = [message.id, message.channel, loan_id, attempts, refusals, is_full, key]
        self._rows.append([BACK, *about])

    # Telling

    def may_take(self, series: int) -> bool:
        """Return whether what is lent now still counts; otherwise this shard will begin again.

        Args:
            series: The beginning after which it was lent.
        """
        is_late = self._is_out_of_contact
        if is_late:
            self.begin_soon()
        return series == self._series and not is_late

    def is_in_doubt(self) -> bool:
        """Return whether the other shard may have given to others what it lent before."""
        if self._contact_at is None:
            return not self._is_sure
        # A shard asks before it gives work to others: what it has told since then may say so.
        heard_at = self._homes.heard_at(self.shard)
        return not self._is_sure or self._is_out_of_contact or self._is_over(heard_at)

    @property
    def _is_out_of_contact(self) -> bool:
        return self._contact_at is None or self._is_over(self._contact_at)

    def _is_over(self, since: float) -> bool:
        """Return whether what held at that time may hold no more."""
        return self._homes.steady_s() - since > _DOUBT_S

    def begin_soon(self, *, others_may_have_it: bool = False) -> None:
        """Tell everything at the next tick.

        Args:
            others_may_have_it: Whether others may have what is here until that is taken.
        """
        self._is_due, self._next_at = True, 0.0
        self._is_sure &= not others_may_have_it

    def tick(self, now: float) -> None:
        """Begin if that is due."""
        if not self._may_send:
            return
        if self._is_out_of_contact:
            self._is_due, self._is_sure = True, self._contact_at is None
        self._contact_at = self._homes.steady_s()
        if self._is_due and now >= self._next_at:
            self._next_at = now + _PAUSE_S
            self._begin()

    @property
    def _may_send(self) -> bool:
        return self._homes.may_send(self.shard)

    def _begin(self) -> None:
        unheard = [row for rows in self._unheard.values() for row in rows]
        unheard += [row for row in self._rows if is_outcome(row)]
        self._unheard.clear()
        copies = [each.row for each in self.copies.values()]
        self._rows = [*unheard, *self.takers.values(), *copies, [END]]
        self._series, self._part, self._is_due = self._state.node.stamp(), 0, False
        self.flush()
        self._last_part = self._part - 1

    def flush(self) -> None:
        """Send what is to be told."""
        if not self._rows or self._is_due:
            return
        if not self._may_send:
            self._is_due = True
            return
        rows, self._rows = self._rows, []
        for part in parts_of(rows, size_of_row):
            told = Told(self._series, self._part, part)
            self._unheard[self._part] = [row for row in part if is_outcome(row)]
            answered = partial(self._answered, self._series, self._part)
            self._part += 1
            self._state.calls.send(self.shard, TOLD, told._asdict(), answered)

    def _answered(self, series: int, part: int, answer: Answer | None) -> None:
        if series != self._series:
            return
        taken = said_by(Taken, answer)
        if taken is None or not taken.is_taken:
            self._is_due = True
            return
        self._unheard.pop(part, None)
        for loan_id in taken.stale:
            self._withdraw(loan_id)
        self._is_sure |= part == self._last_part

    def _withdraw(self, loan_id: int) -> None:
        """Remove a copy of work that others do meanwhile: a verdict on it comes too late."""
        copy = self.copies.pop(loan_id, None)
        if copy is None:
            return
        copy.record.is_over = True
        queue = copy.session.queue
        found = [each for each in queue.messages() if borrowed_of(each) is copy.record]
        queue.remove_messages(found)
        self._state.ledger.borrowed(-len(found))
