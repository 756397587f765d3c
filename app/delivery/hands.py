"""What a receiver has in hands, and what came back from it."""

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Sequence
from operator import attrgetter

from app.delivery.counters import Counters
from app.delivery.entries import Carried, Entry, Settling
from app.delivery.messages import Message

# A receiver that never acknowledges gets its batches again at once this many times, ...
_FREE_REPEATS = 3
# ... then after a pause that doubles from the first to the second of these (seconds).
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 1.0

_BATCH, _WRITTEN = Settling.BATCH, Settling.WRITTEN
by_seq = attrgetter("seq")
by_place = attrgetter("place")
by_end = attrgetter("expires_ms")


class Hands:
    """The head of a receiver's queue: `handed` to it, then `returned` by it.

    What was handed over becomes entries when somebody asks for more than the messages: mostly the
    receiver has taken them all before anybody does.
    """

    __slots__ = (
        "_counters",
        "_former_seq",
        "_fresh",
        "_fresh_at",
        "_handed",
        "_heard",
        "_last_seq",
        "_repeats",
        "batch",
        "carries_repeats",
        "count",
        "has_pending",
        "is_mixed",
        "is_overflowing",
        "is_restored",
        "mortals",
        "response_timeout_s",
        "returned",
        "seq",
        "set_aside",
        "settling",
        "size",
        "suspect",
        "tried",
        "window",
    )

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self.settling = _WRITTEN
        # In the order in which they go again, by the number of their last hand-over.
        self.returned: dict[int, Entry] = {}
        self._handed: dict[int, Entry] = {}
        # The last hand-over while it is all that the receiver has, and when that was.
        self._fresh: Sequence[Message] = ()
        self._fresh_at = 0.0
        # Of the whole queue, what waits in it included.
        self.count = 0
        self.size = 0
        self.batch = 0
        self.seq = 0
        self.response_timeout_s = 0.0
        # The number before those of the last hand-over.
        self._last_seq = 0
        # The last one that a client of before was told.
        self._former_seq = 0
        # The last one that the client has, as far as it has shown, or nothing speaks against it.
        self._heard = 0
        self._repeats = 0
        # Whether the last hand-over had anything that was handed over before.
        self.carries_repeats = False
        # What would have gone with it, had there been room, and was in an earlier one.
        self.set_aside: Sequence[Entry] = ()
        # Whether the receiver may still work on something.
        self.has_pending = False
        # How many may go together: as many as the receiver has taken since it failed last, and one.
        # All, if zero: it has not failed since the queue was empty.
        self.window = 0
        # What went alone for its last attempt; nothing joins it while the receiver has it.
        self.suspect: Entry | None = None
        # With this one its channel is tried again, although that is held back.
        self.tried: Message | None = None
        # Whether the batches of this queue were numbered by a process that is gone.
        self.is_restored = False
        # What waits or came back and leaves when its life is over, the first to go first.
        self.mortals: list[Message] | None = None
        # These hold until the queue is empty. What waits, or is to come, may have another order
        # than that of its arrival, ...
        self.is_mixed = False
        # ... something found no room.
        self.is_overflowing = False

    @property
    def handed(self) -> dict[int, Entry]:
        """What the receiver has in hands, by number."""
        fresh, handed = self._fresh, self._handed
        if fresh:
            self._fresh = ()
            now, due = self._fresh_at, self._due(self._fresh_at)
            for seq, message in enumerate(fresh, self._last_seq + 1):
                handed[seq] = Entry(message, seq, self.batch, 1, now, due)
            handed[self.seq].was_alone = len(fresh) == 1
        return handed

    def _due(self, handed_at: float) -> float:
        """When something must have been said of what was handed over then; never, if zero."""
        return handed_at + self.response_timeout_s if self.response_timeout_s else 0.0

    @property
    def carried(self) -> Carried:
        """The last hand-over."""
        return Carried(self.batch, range(self._last_seq + 1, self.seq + 1))

    def unanswered(self) -> list[Entry]:
        """What the receiver got and has neither acknowledged nor works on."""
        if self.settling is not _BATCH:
            return []
        return [entry for entry in self.handed.values() if not entry.is_pending]

    def _take_unacknowledged(self) -> list[Entry]:
        """What the receiver got and does not work on: the reply that carried it was lost."""
        lost = self.unanswered()
        if lost:
            self._lose(lost)
            for entry in lost:
                del self.handed[entry.seq]
                if entry.message.expires_ms:
                    self.add_mortal(entry.message)
        return lost

    def _lose(self, lost: Sequence[Entry]) -> None:
        """The reply that carried these was lost."""
        self._repeats += 1
        self._counters.redelivered += len(lost)
        for entry in lost:
            entry.redelivered += 1

    # What receivers show without acknowledging anything

    def hear(self, seq: int) -> None:
        """The client has what it was handed up to this number."""
        self._heard = max(self._heard, seq)

    def lose_reply(self, *, is_whole: bool) -> list[Entry]:
        """The last reply may be lost: what the client has shown no sign of waits again.

        Of a reply that arrives `is_whole` or not at all, one sign is enough.
        """
        if is_whole and self._heard > self._last_seq:
            return []
        handed = self.handed.items()
        lost = [entry for seq, entry in handed if seq > self._heard and not entry.is_pending]
        if lost:
            self._lose(lost)
            self.narrow()
        return self._put_back(lost)

    # What is written

    def written(self, carried: Carried | None = None) -> Sequence[Message]:
        """The transport has taken what was handed over; the messages that are settled by that."""
        if self.settling is not _WRITTEN:
            return ()
        if self._fresh and (carried is None or carried.batch == self.batch):
            return self._settle_handed()
        if self.handed or self.returned:
            return self.settle((carried or self.carried).numbers)
        return ()

    def not_written(self, carried: Carried | None = None) -> list[Entry]:
        """The transport took nothing of what was handed over: it waits again."""
        batch, numbers = carried or self.carried
        entries = [self.handed[seq] for seq in numbers if seq in self.handed]
        for entry in entries:
            # What nobody got is why nobody failed.
            entry.was_alone = False
            if entry.batch == batch:
                entry.batch = 0
        return self._put_back(entries)

    # What receivers say

    def acknowledge(self, batch: int) -> Sequence[Message]:
        """Settle the batches up to this one; a number outside 0..last settles nothing."""
        if (
            batch == self.batch
            and not (self.returned or self.has_pending)
            and self.settling is _BATCH
        ):
            self.is_restored = False
            return self._settle_handed()
        if self.is_restored and batch > self.batch:
            self.batch = batch
        self.is_restored = False
        if not 0 <= batch <= self.batch:
            self._counters.acks_out_of_range += 1
            return ()
        if self.settling is not _BATCH:
            return ()
        passed = [
            seq
            for seq, entry in self.handed.items()
            if entry.batch <= batch and not entry.is_pending
        ]
        # What could not be handed over again, but had arrived.
        passed += [
            seq
            for seq, entry in self.returned.items()
            if 0 < entry.batch <= batch and (not entry.until or batch <= entry.until)
        ]
        if passed:
            self._repeats = 0
        return self.settle(passed)

    def _settle_handed(self) -> Sequence[Message]:
        """The usual case: the receiver has all that it was given."""
        settled, self._fresh = self._fresh, ()
        if not settled:
            settled = [entry.message for entry in self._handed.values()]
            self._handed.clear()
        if settled:
            self._repeats = 0
            self.widen(len(settled))
        self._counters.acked += len(settled)
        self._leave(settled)
        return settled

    def settle(self, seqs: Iterable[int]) -> Sequence[Message]:
        """These are done; unknown numbers mean nothing."""
        settled = [entry.message for entry in self.withdraw(seqs)]
        self.widen(len(settled))
        self._counters.acked += len(settled)
        return settled

    # How many go together

    def narrow(self) -> None:
        """The receiver has failed: what it fails at is found by giving it one after the other."""
        if self.settling is not _WRITTEN:
            self.window = 1

    def widen(self, count: int) -> None:
        """The receiver has dealt with so many, and has shown that it can."""
        if self.window:
            self.window += count

    def room(self, limit: int) -> int:
        """How many may go together where so many were agreed on; all, if negative."""
        window = self.window
        return window if window and not 0 <= limit <= window else limit

    def keeps_suspect(self) -> bool:
        """Whether the receiver still has what it was given alone."""
        suspect = self.suspect
        if suspect is None or self._handed.get(suspect.seq) is not suspect:
            return False
        return suspect.is_pending or self.settling is not _BATCH

    def coming_again(self) -> list[Entry]:
        """What would go first, in order: it was handed over before."""
        entries = self.unanswered()
        if self.returned:
            entries = sorted([*entries, *self.returned.values()], key=by_place)
        return entries

    def find(self, seq: int) -> Entry | None:
        """The entry that the present client was told under this number, if that is its last one."""
        entry = self.handed.get(seq)
        if entry is None and seq > self._former_seq:
            return self.returned.get(seq)
        return entry

    def withdraw(self, seqs: Iterable[int]) -> list[Entry]:
        """Take these out; it is the caller's to count what became of them."""
        taken, handed = [], self.handed
        for seq in seqs:
            entry = handed.pop(seq, None)
            if entry is None:
                entry = self.find(seq)
                if entry is None:
                    continue
                del self.returned[seq]
                self._drop_mortals((entry.message,))
            taken.append(entry)
        self._leave([entry.message for entry in taken])
        return taken

    def take_out(self, entries: Sequence[Entry]) -> None:
        """These leave, whether in hands or returned, whatever their numbers are worth."""
        for entry in entries:
            (self.handed if entry.seq in self.handed else self.returned).pop(entry.seq)
        messages = [entry.message for entry in entries]
        self._drop_mortals(messages)
        self._leave(messages)

    # What comes back

    def give_back(self, since: int = 0) -> list[Entry]:
        """What was handed over from this number on waits again, ahead of everything else.

        The receiver has seen it and wants it again: no earlier batch speaks for it any more.
        """
        entries = [entry for seq, entry in self.handed.items() if seq >= since]
        for entry in (*entries, *self.returned.values()):
            if entry.seq >= since:
                entry.batch = 0
        if entries:
            self.narrow()
        return self._put_back(entries)

    def lose_sight(self) -> list[Entry]:
        """Contact is lost: all waits again, but an acknowledgement may still come."""
        entries = list(self.handed.values())
        for entry in entries:
            if entry.is_pending:
                entry.batch = 0
        if entries:
            self.narrow()
        return self._put_back(entries)

    def change_hands(self) -> list[Entry]:
        """Whatever the next client gets, it counts its batches from 1; all that came back."""
        back = self.give_back()
        for entry in back:
            entry.redelivered += 1
        self._counters.redelivered += len(back)
        self.batch = self._repeats = 0
        self.is_restored = False
        self._former_seq = self.seq
        return list(self.returned.values())

    def _put_back(self, entries: list[Entry]) -> list[Entry]:
        for entry in entries:
            del self.handed[entry.seq]
            entry.is_pending = False
            entry.due = 0.0
            if entry.message.expires_ms:
                self.add_mortal(entry.message)
        if entries:
            self._line_up([*self.returned.values(), *entries])
        return entries

    def _line_up(self, entries: Iterable[Entry]) -> None:
        """These go again, in their old order."""
        self.returned = {entry.seq: entry for entry in sorted(entries, key=by_place)}

    def keep_pending(self, seqs: Collection[object]) -> None:
        """The receiver works on these, and on no others."""
        self.has_pending = bool(seqs)
        for seq, entry in self.handed.items():
            entry.is_pending = seq in seqs
            if entry.is_pending:
                self.hear(seq)

    def pause_s(self) -> float:
        """How long the receiver must wait for batches that it did not acknowledge before."""
        excess = self._repeats - _FREE_REPEATS
        if excess < 0 or not (self.handed or self.returned):
            return 0.0
        return min(_FIRST_PAUSE_S * 2.0 ** min(excess, 16), _LONGEST_PAUSE_S)

    def first_due(self) -> float:
        """When the receiver must have said something of what it has; never, if zero."""
        if self._fresh:
            return self._due(self._fresh_at)
        for entry in self._handed.values():
            return entry.due
        return 0.0

    # What leaves when its life is over

    def add_mortal(self, message: Message) -> None:
        """This one waits, or waits again."""
        if self.mortals is None:
            self.mortals = []
        insort(self.mortals, message, key=by_end)

    def _drop_mortals(self, messages: Iterable[Message]) -> None:
        """These wait no more."""
        mortals = self.mortals
        if mortals:
            for message in messages:
                place = bisect_left(mortals, message.expires_ms, key=by_end)
                while place < len(mortals) and mortals[place].expires_ms == message.expires_ms:
                    if mortals[place] is message:
                        del mortals[place]
                        break
                    place += 1

    def _leave(self, messages: Sequence[Message]) -> None:
        if len(messages) == self.count:
            self.count = self.size = self.window = 0
            self.mortals = None
            self.is_overflowing = self.is_mixed = False
        else:
            self.count -= len(messages)
            self.size -= sum([len(message.wire) for message in messages])
