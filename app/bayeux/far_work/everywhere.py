"""Work queues among several shards; a `FarWork`. A server alone does not load this module."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from holdfast.bayeux.far_work.borrowing import Borrows
from holdfast.bayeux.far_work.lending import Loan, Loans, StandIn
from holdfast.bayeux.far_work.work_calls import ASKED, LENT, TOLD, Job, Taken, Told
from holdfast.bayeux.publish.answering_others import AnsweringOthers
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.calls import Asker, Asking
from holdfast.bayeux.state.server_state import ServerState
from holdfast.delivery.basics.channels import Channel, overlaps
from holdfast.delivery.codec.attributes import Way
from holdfast.delivery.messages.message import Message
from holdfast.delivery.ports.homes import HomesPort
from holdfast.delivery.ports.other_shards import OthersPort
from holdfast.delivery.requests.responders import silent_on
from holdfast.delivery.shared_queues.lent_work import LentWork
from holdfast.delivery.shared_queues.work import Borrowed, borrowed_of

# How long this shard waits after its start for others to say what they have.
_UNSURE_S: Final = 5.0
_MOST_PATTERNS: Final = 20_000


class _Known:
    """A session that was looked at."""

    __slots__ = ("full_at", "session", "silent", "subscriptions")

    def __init__(self, session: Session) -> None:
        self.session = session
        # How many subscriptions it had, and on how many it answers no requests.
        self.subscriptions = len(session.subscriptions)
        self.silent = len(silent_on(session))
        # The shards that think that its queue is full.
        self.full_at: set[int] = set()

    def has_changed(self, session: Session) -> bool:
        """Return whether it may take other work now."""
        if self.subscriptions != len(session.subscriptions):
            return True
        return self.silent != len(silent_on(session))


class WorkEverywhere:
    """Has the loans of this shard to others, and what it borrows from them."""

    def __init__(
        self,
        state: ServerState,
        homes: HomesPort,
        others: OthersPort,
        requests: AnsweringOthers,
    ) -> None:
        self._state, self._requests = state, requests
        self._homes = homes
        self._others = others
        self._lent = LentWork(state.hub, state.work.of, state.work.dispute)
        by_id: dict[int, Loan] = {}
        self._by_pattern: dict[str, dict[StandIn, None]] = {}
        shards = homes.others
        self._loans = {
            shard: Loans(
                *(state, homes, shard, self._lent), by_id=by_id, by_pattern=self._by_pattern
            )
            for shard in shards
        }
        self._borrows = {shard: Borrows(state, homes, shard) for shard in shards}
        # Live sessions by key, whether they take work of others or not.
        self._known: dict[str, _Known] = {}
        # By pattern, the other shards that may have work that matches it.
        self._shards_of: dict[str, Sequence[int]] = {}
        # Copies that have left their queue, and need a look at the end of the turn.
        self._left: list[Borrowed] = []
        # How often it waits for the store to have what became of copies.
        self._storing = 0
        self._is_due = False
        # Since when this process serves, and which shards cannot be reached.
        self._began: float | None = None
        self._away: set[int] = set()
        self._is_unsure = True
        state.calls.handle(LENT, self._borrow, Way.LOAN)
        state.calls.handle(ASKED, self._begin)
        state.calls.handle(TOLD, self._hear)

    # As work queues see it

    @property
    def is_unsure(self) -> bool:
        return self._is_unsure

    @property
    def is_settled(self) -> bool:
        return (
            not (self._left or self._storing)
            and all(each.is_settled for each in self._loans.values())
            and all(each.is_settled for each in self._borrows.values())
        )

    def takers(self, channel: Channel) -> Sequence[Session]:
        found: dict[StandIn, None] = {}
        for pattern in channel.lookups:
            found |= self._by_pattern.get(pattern, {})
        return [each for each in found if each.loans.may_lend]

    def reserve(self, taker: Session, message: Message) -> bool:
        if not isinstance(taker, StandIn):
            return False
        taker.queue.reserve(len(message.wire))
        return True

    def lend(self, source: Session, message: Message, taker: Session) -> None:
        if isinstance(taker, StandIn):
            taker.loans.lend(self._lent.begin(source, message, taker.key), taker)
            self._end_turn_soon()

    def look_at(self, receiver: Session) -> None:
        known = self._known.get(receiver.key)
        if known is None or known.has_changed(receiver):
            self.look_again(receiver)
        elif known.full_at and receiver.queue.lacks_room(1) is None:
            for shard in known.full_at:
                self._borrows[shard].has_room(receiver)
            known.full_at.clear()
            self._end_turn_soon()

    def look_again(self, receiver: Session) -> None:
        if receiver.has_shared_queue:
            return
        if not receiver.is_live:
            self.forget(receiver)
            return
        self._known[receiver.key] = _Known(receiver)
        patterns: dict[int, list[str]] = {}
        for pattern in receiver.subscriptions:
            for shard in self._shards_with(pattern):
                patterns.setdefault(shard, []).append(pattern)
        for shard, borrows in self._borrows.items():
            if shard in patterns:
                borrows.takes(receiver, patterns[shard])
            else:
                borrows.takes_none(receiver.key)
        self._end_turn_soon()

    def _shards_with(self, pattern: str) -> Sequence[int]:
        found = self._shards_of.get(pattern)
        if found is None:
            if len(self._shards_of) >= _MOST_PATTERNS:
                self._shards_of.clear()
            work = self._state.rules.work_patterns
            has_work = any(overlaps(each, pattern) for each in work)
            homes = self._homes.homes_of(pattern) if has_work else ()
            found = self._shards_of[pattern] = [each for each in homes if each is not None]
        return found

    def forget(self, receiver: Session) -> None:
        if self._known.pop(receiver.key, None) is not None:
            for borrows in self._borrows.values():
                borrows.takes_none(receiver.key)
            self._end_turn_soon()

    def return_home(self, key: str, message: Message) -> None:
        record = borrowed_of(message)
        if record is None or record.is_over:
            return
        record.is_over = True
        borrows = self._borrows[record.home]
        borrows.back(message, record.loan_id, key)
        self._state.ledger.borrowed(-1)
        self._end_turn_soon()

    # As copies see it

    def mark_doubtful(self, receiver: Session) -> None:
        if not receiver.queue.has_counted:
            return
        doubted = [shard for shard, each in self._borrows.items() if each.is_in_doubt()]
        if doubted:
            for message in receiver.queue.new:
                record = borrowed_of(message)
                if record is not None and record.home in doubted:
                    receiver.queue.mark_redelivered(message)

    def left(self, borrowed: Borrowed) -> None:
        """Look at a copy that has left its queue when the turn ends: it may be in another one."""
        self._left.append(borrowed)
        self._end_turn_soon()

    def _end_turn_soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._state.backlog.at_turn_end(self._end_turn)

    def _end_turn(self, _: float) -> None:
        self._is_due = False
        left, self._left = self._left, []
        if done := [each for each in left if each.queues <= 0]:
            # The journal here tells what it became. Others hear of it when a kill cannot undo that.
            self._storing += 1
            self._state.store.after(partial(self._tell_done, done))
        for borrows in self._borrows.values():
            borrows.flush()
        for loans in self._loans.values():
            loans.flush()

    def _tell_done(self, done: Sequence[Borrowed]) -> None:
        self._storing -= 1
        for each in done:
            if not each.is_over:
                each.is_over = True
                self._borrows[each.home].done(each)
        self._end_turn_soon()

    # What other shards ask

    def _borrow(self, lent: Asking, asker: Asker, _: float) -> None:
        borrows = self._borrows_of(asker)
        if borrows.may_take(lent["series"]):
            for (loan_id, key), message in zip(lent["jobs"], lent["enclosed"], strict=True):
                self._take(borrows, Job(loan_id, key, message))
        asker.answer(Taken(True)._asdict())
        self._end_turn_soon()

    def _borrows_of(self, asker: Asker) -> Borrows:
        assert asker.shard is not None
        return self._borrows[asker.shard]

    def _take(self, borrows: Borrows, job: Job) -> None:
        state, message, known = self._state, job.message, self._known.get(job.key)
        if job.loan_id in borrows.copies:
            return
        record = Borrowed(borrows.shard, job.loan_id)
        record.mark(message)
        if known is None or job.key not in borrows.takers:
            borrows.back(message, job.loan_id, job.key)
            return
        session = known.session
        if session.queue.lacks_room(len(message.wire)) is not None:
            known.full_at.add(record.home)
            borrows.back(message, job.loan_id, job.key, is_full=True)
            return
        record.borrower = self
        borrows.enter(message, record, session)
        self._requests.arrived(message, is_kept=session.is_durable)
        for each in message.records or ():
            each.shown_to(message, (session,))
        session.queue.insert(message)
        state.ledger.borrowed(1)
        if message.expires_ms:
            state.hub.settling.watch_expiry(session)
        state.hub.make_ready(session)

    def _begin(self, asked: Asking, asker: Asker, _: float) -> None:
        self._borrows_of(asker).begin_soon(others_may_have_it=asked["others_may_have_it"])
        asker.answer(Taken(True)._asdict())

    def _hear(self, told: Asking, asker: Asker, _: float) -> None:
        assert asker.shard is not None
        asker.answer(self._loans[asker.shard].take(Told(**told))._asdict())

    # The life of this shard

    def go_on(self) -> None:
        """Attach the copies that an earlier process had."""
        for session in self._state.sessions:
            for message in session.queue.messages():
                record = borrowed_of(message)
                if record is None or record.borrower is not None:
                    # A process that takes everything back has attached its copies before.
                    continue
                if record.home in self._borrows:
                    record.borrower = self
                    record.queues += 1
                    session.queue.has_counted = True
                    self._borrows[record.home].enter(message, record, session)
            self.look_again(session)

    def tick(self, now: float, _: int) -> None:
        """Begin, and take note of shards that are lost."""
        if self._began is None:
            self._began = now
        for borrows in self._borrows.values():
            borrows.tick(now)
        for shard, loans in self._loans.items():
            self._look_for(shard, loans, now)
        if self._is_unsure and self._is_sure(now):
            self._is_unsure = False
            self._state.work.assign_all()

    def _look_for(self, shard: int, loans: Loans, now: float) -> None:
        is_away = self._others.is_away(shard)
        if not is_away:
            self._away.discard(shard)
        elif shard not in self._away:
            self._away.add(shard)
            loans.doubt()
        loans.tick(now, is_away=is_away)

    def _is_sure(self, now: float) -> bool:
        if self._began is not None and now - self._began >= _UNSURE_S:
            return True
        return all(loans.has_told or shard in self._away for shard, loans in self._loans.items())
