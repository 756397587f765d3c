"""Work of this shard that sessions of another shard do: it stays in its queue, in flight.

The other shard tells which of its sessions take work, and what becomes of it: one part after the
other, which begin with everything. A session that takes work has a stand-in here, and as much work
as it may have at once. Work of which the other shard says nothing any more returns to its queue:
when it begins again without naming it, does not begin again although it was asked, or cannot be
reached.
"""

from math import inf
from typing import TYPE_CHECKING, Final

from holdfast.bayeux.far_work.work_calls import (
    ASKED,
    BACK,
    DONE,
    END,
    GONE,
    HAS,
    LENT,
    TAKES,
    Job,
    Row,
    Taken,
    Told,
    is_outcome,
    parts_of,
    size_of_job,
)
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.calls import Answer
from holdfast.bayeux.state.server_state import ServerState
from holdfast.delivery.basics.ignoring import ignore
from holdfast.delivery.codec.attributes import attempts_in, refusals_in
from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.ports.homes import HomesPort
from holdfast.delivery.queues.queue import CallbackQueue, QueueLimits
from holdfast.delivery.requests.responders import be_silent_on
from holdfast.delivery.shared_queues.lent_work import LentWork

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# How often the other shard is asked to begin, until it does, and how long its work waits for that.
_AGAIN_S: Final = 1.0
_SILENT_S: Final = 5.0


class StandIn(Session):
    """Stands in for a session of another shard that takes work of this one."""

    __slots__ = ("is_full", "loans", "window")

    def __init__(self, loans: "Loans", queue: CallbackQueue, row: Row) -> None:
        key, number, self.window, patterns, silent = row[1:]
        super().__init__("", number, queue)
        self.go_by(key)
        self.loans = loans
        # Whether its queue had no room, and it has not told since that it has.
        self.is_full = False
        self.subscriptions = set(patterns)
        for pattern in silent:
            be_silent_on(self, pattern)

    def fill(self) -> None:
        """Let it take nothing until it says so."""
        if not self.is_full:
            self.is_full = True
            self.queue.coming += self.window


class Loan:
    """One piece of work that another shard has."""

    __slots__ = ("channel", "entry", "id", "key", "stand_in")

    def __init__(self, id: int, key: str, entry: Entry) -> None:
        self.id = id
        self.key = key
        self.entry = entry
        self.channel = entry.message.channel
        # The stand-in at which it takes room, if there is one.
        self.stand_in: StandIn | None = None

    def take_room(self, stand_in: StandIn) -> None:
        """Take room at a stand-in."""
        self.stand_in = stand_in
        stand_in.queue.reserve(len(self.entry.message.wire))

    def leave_room(self) -> None:
        """Take room no more."""
        stand_in, self.stand_in = self.stand_in, None
        if stand_in is not None:
            stand_in.queue.release(len(self.entry.message.wire))


class Loans:
    """The loans of this shard to one other one.

    Args:
        lent: The entries of all loans of this shard.
        by_id: All loans of this shard, by ids of messages.
        by_pattern: All stand-ins of this shard, by patterns to which their sessions subscribe.
    """

    def __init__(
        self,
        state: ServerState,
        homes: HomesPort,
        shard: int,
        lent: LentWork[Session],
        *,
        by_id: dict[int, Loan],
        by_pattern: dict[str, dict[StandIn, None]],
    ) -> None:
        self._state = state
        self._work, self._lent = state.work, lent
        self._homes = homes
        self._shard = shard
        self._by_id, self._by_pattern = by_id, by_pattern
        # Numbers of the beginning, 0 if there is none, and of the next part.
        self._series = self._part = 0
        self.stand_ins: dict[str, StandIn] = {}
        # The loans by their ids, and by keys of sessions; and those named since the beginning.
        self._loans: dict[int, Loan] = {}
        self._of_key: dict[str, dict[int, Loan]] = {}
        self._named: set[int] = set()
        # Whether everything was told since the beginning.
        self.has_told = False
        self._unsent: list[Job] = []
        self._ask_at = 0.0
        # Since when the other shard has not told everything, although it could be asked; and
        # whether others may get work that it has.
        self._silent_since = inf
        self._may_have_lost = False
        self._rows: Mapping[str, Callable[[Row, list[int]], None]] = {
            TAKES: self._takes,
            GONE: self._gone,
            HAS: self._has,
            DONE: self._done,
            BACK: self._back,
            END: self._end,
        }

    @property
    def may_lend(self) -> bool:
        """Whether its sessions may get work now."""
        return self.has_told and self._homes.may_send(self._shard)

    # Lending

    @property
    def is_settled(self) -> bool:
        """Whether everything that was lent is on its way."""
        return not self._unsent

    def lend(self, entry: Entry, stand_in: StandIn) -> None:
        """Lend work to a session, whose stand-in has room reserved, at the end of the turn."""
        loan = self._add(Loan(self._state.node.stamp(), stand_in.key, entry))
        loan.stand_in = stand_in
        self._unsent.append(Job(loan.id, loan.key, entry.message))

    def _add(self, loan: Loan) -> Loan:
        assert loan.id not in self._loans
        assert loan.entry.id not in self._by_id, "this work is lent already"
        self._loans[loan.id] = self._by_id[loan.entry.id] = loan
        self._of_key.setdefault(loan.key, {})[loan.id] = loan
        return loan

    def flush(self) -> None:
        """Send what was lent."""
        jobs, self._unsent = self._unsent, []
        for part in parts_of(jobs, size_of_job):
            self._send(part)

    def _send(self, jobs: list[Job]) -> None:
        series = self._series

        def answered(answer: Answer | None) -> None:
            if answer is None and series == self._series:
                # Whether it came there, or may yet come, only the next beginning says.
                self._begin(0)

        lent = {
            "series": series,
            "jobs": [[each.loan_id, each.key] for each in jobs],
            "enclosed": [each.message for each in jobs],
        }
        self._state.calls.send(self._shard, LENT, lent, answered)

    def tick(self, now: float, *, is_away: bool = False) -> None:
        """Ask again, as long as it has not told everything.

        Args:
            is_away: Whether there is no link to it. Calls may still arrive there, and it must
                hear so before others get its work.
        """
        if self.has_told:
            self._silent_since = inf
            return
        may_ask = bool(self._loans) or not is_away
        if may_ask and now >= self._ask_at and self._homes.may_send(self._shard):
            self._ask_at = now + _AGAIN_S
            # Others may get work that it has, until it has begun.
            asked = {"others_may_have_it": self._may_have_lost}
            self._state.calls.send(self._shard, ASKED, asked, ignore)
        # While the store here takes no calls, the other shard is not asked.
        can_ask = self._state.store.takes_messages
        self._silent_since = min(self._silent_since, now) if can_ask else inf
        if self._loans and now - self._silent_since >= _SILENT_S:
            self._lose()

    def doubt(self) -> None:
        """Lend nothing until that shard has begun again, which it is asked to do."""
        self._begin(0)

    def _lose(self) -> None:
        """Requeue all work of that shard, which has to begin again."""
        self._begin(0)
        for loan in [*self._loans.values()]:
            self._remove(loan)
            self._lent.return_lost(loan.channel, loan.key, loan.entry)

    # What the other shard tells

    def take(self, told: Told) -> Taken:
        """Take a part."""
        if not told.part:
            self._begin(told.series)
        is_next = (told.series, told.part) == (self._series, self._part)
        stale: list[int] = []
        for row in told.rows:
            # What became of work, counts in any order.
            if is_next or is_outcome(row):
                self._rows[row[0]](row, stale)
        self._part += is_next
        return Taken(is_next, stale)

    def _begin(self, series: int) -> None:
        self._series, self._part, self.has_told = series, 0, False
        self._may_have_lost |= not series
        self._unsent = []
        self._named.clear()
        for key in [*self.stand_ins]:
            self._remove_stand_in(key)

    def _takes(self, row: Row, _: list[int]) -> None:
        key: str = row[1]
        self._remove_stand_in(key)
        limits = QueueLimits(row[3], self._state.queue_limits.bytes)
        queue = CallbackQueue(limits, self._state.counters)
        stand_in = self.stand_ins[key] = StandIn(self, queue, row)
        for pattern in stand_in.subscriptions:
            self._by_pattern.setdefault(pattern, {})[stand_in] = None
        for loan in self._of_key.get(key, {}).values():
            loan.take_room(stand_in)
        self._work.offer_to(stand_in)

    def _gone(self, row: Row, _: list[int]) -> None:
        self._remove_stand_in(row[1])
        # Others may have refused what it has not.
        self._work.look_at_disputed()

    def _remove_stand_in(self, key: str) -> None:
        stand_in = self.stand_ins.pop(key, None)
        if stand_in is None:
            return
        for loan in self._of_key.get(key, {}).values():
            loan.stand_in = None
        for pattern in stand_in.subscriptions:
            others = self._by_pattern[pattern]
            del others[stand_in]
            if not others:
                del self._by_pattern[pattern]

    def _has(self, row: Row, stale: list[int]) -> None:
        id, channel, loan_id, key = row[1:]
        if loan_id in self._loans:
            self._named.add(loan_id)
            return
        entry = None if id in self._by_id else self._lent.begin_again(channel, id, key)
        if entry is None:
            stale.append(loan_id)
            return
        loan = self._add(Loan(loan_id, key, entry))
        self._named.add(loan_id)
        if key in self.stand_ins:
            loan.take_room(self.stand_ins[key])

    def _done(self, row: Row, _: list[int]) -> None:
        id, channel, loan_id = row[1:]
        loan = self._returned(loan_id)
        if loan is not None:
            self._lent.finish(channel, id, loan.entry)
        elif id not in self._by_id:
            # Its loan was forgotten, and no other session has it.
            self._lent.finish(channel, id, None)

    def _back(self, row: Row, _: list[int]) -> None:
        id, channel, loan_id, attempts, refusals, is_full, key = row[1:]
        loan = self._loans.get(loan_id)
        stand_in = None if loan is None else loan.stand_in
        if is_full and stand_in is not None:
            stand_in.fill()
        former = None if attempts is None else attempts_in(attempts)
        refused = refusals_in(refusals)
        if self._returned(loan_id) is not None and loan is not None:
            self._lent.return_refused(channel, key, loan.entry, former=former, refusals=refused)
        elif id not in self._by_id:
            self._lent.note_attempts(channel, key, id, former=former, refusals=refused)

    def _returned(self, loan_id: int) -> Loan | None:
        loan = self._loans.get(loan_id)
        if loan is not None:
            stand_in = loan.stand_in
            self._remove(loan)
            if stand_in is not None:
                self._work.offer_to(stand_in)
        return loan

    def _remove(self, loan: Loan) -> None:
        loan.leave_room()
        del self._loans[loan.id], self._by_id[loan.entry.id]
        its = self._of_key[loan.key]
        del its[loan.id]
        if not its:
            del self._of_key[loan.key]

    def _end(self, _: Row, __: list[int]) -> None:
        for loan in [each for each in self._loans.values() if each.id not in self._named]:
            self._remove(loan)
            self._lent.return_lost(loan.channel, loan.key, loan.entry)
        self._named.clear()
        self.has_told, self._may_have_lost = True, False
        self._work.assign_all()
