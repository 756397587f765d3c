"""The entries of one receiver that are in flight or returned, and what an ack settles."""

from collections.abc import Collection, Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from holdfast.delivery.basics.counters import Counters
from holdfast.delivery.messages.batch import Batch
from holdfast.delivery.messages.entries import Entry, SettledBy
from holdfast.delivery.messages.message import Message, release
from holdfast.delivery.queues import lifetimes

if TYPE_CHECKING:
    from holdfast.delivery.queues.features import QueueRecord

_BATCH: Final = SettledBy.BATCH
_WRITTEN: Final = SettledBy.WRITTEN
by_seq = attrgetter("seq")
by_place = attrgetter("place")


class InFlight:
    """The head of a receiver's queue: entries in flight, then entries in `returned`.

    In flight is either one fresh batch or a set of entries. `in_flight` converts the batch into
    entries when a caller needs them; usually the receiver has settled the batch before that.
    """

    __slots__ = (
        "_counters",
        "_former_seq",
        "_fresh",
        "_handed",
        "_heard",
        "_last_seq",
        "_repeats",
        "batch",
        "count",
        "expiring",
        "gives_verdicts",
        "has_counted",
        "has_former",
        "has_pending",
        "is_mixed",
        "is_restored",
        "records",
        "response_timeout_s",
        "returned",
        "seq",
        "settling",
        "size",
        "window",
    )

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self.settling = _WRITTEN
        # Whether the receiver can refuse single messages. If not, small batches after a failure
        # reveal nothing.
        self.gives_verdicts = False
        # By the number of the last hand-over, in the order of the next one.
        self.returned: dict[int, Entry] = {}
        self._handed: dict[int, Entry] = {}
        # The batch in flight, while it is fresh.
        self._fresh: Batch | None = None
        # Totals of the whole queue, including new messages.
        self.count = 0
        self.size = 0
        self.batch = 0
        self.seq = 0
        self.response_timeout_s = 0.0
        # The highest number before the last hand-over.
        self._last_seq = 0
        # The highest number that a former client received.
        self._former_seq = 0
        # The highest number that the client is known or assumed to have received.
        self._heard = 0
        self._repeats = 0
        # Whether the receiver may still be processing an entry.
        self.has_pending = False
        # How many entries may be handed over together: one more than the receiver has settled since
        # its last failure. Zero means no limit: no failure since the queue was empty.
        self.window = 0
        # Whether an earlier process numbered the batches of this queue.
        self.is_restored = False
        # Waiting messages with a lifetime, sorted by expiry.
        self.expiring: list[Message] | None = None
        # What follows is reset when the queue is empty: what single features know of it, ...
        self.records: tuple[QueueRecord, ...] | None = None
        # ... whether new messages may be out of order, ...
        self.is_mixed = False
        # ... whether some may carry records that count queues, and are told when they leave, ...
        self.has_counted = False
        # ... and whether other sessions may have handed over messages that wait here.
        self.has_former = False

    def in_flight(self) -> dict[int, Entry]:
        """Return the entries in flight by number. Creates the entries of a fresh batch."""
        fresh = self._fresh
        if fresh is not None:
            self._fresh = None
            self._handed = fresh.split(self._due(fresh.handed_at))
        return self._handed

    def glance(self) -> Batch | list[Entry]:
        """Return what is in flight without creating entries for a fresh batch."""
        fresh = self._fresh
        return [*self._handed.values()] if fresh is None else fresh

    def tried(self) -> list[Entry]:
        """Return the entries in flight, then the returned ones."""
        return [*self.in_flight().values(), *self.returned.values()]

    @property
    def in_flight_count(self) -> int:
        """The number of messages in flight."""
        return len(self._handed) if self._fresh is None else len(self._fresh.messages)

    @property
    def has_tried(self) -> bool:
        """Whether any entry is in flight or returned."""
        return self._fresh is not None or bool(self._handed) or bool(self.returned)

    def _due(self, handed_at: float) -> float:
        """Return when the response to a hand-over at this time is due; zero if never."""
        return handed_at + self.response_timeout_s if self.response_timeout_s else 0.0

    def unanswered(self) -> list[Entry]:
        """Return the entries in flight that are neither acked nor pending."""
        if self.settling is not _BATCH:
            return []
        return [entry for entry in self.in_flight().values() if not entry.is_pending]

    def _lose(self, lost: Sequence[Entry]) -> None:
        """Count these entries as lost with their reply."""
        self._repeats += 1
        self._counters.redelivered += len(lost)
        for entry in lost:
            entry.redelivered += 1

    def _return_as_lost(self, lost: list[Entry]) -> list[Entry]:
        """Return these entries to the queue after their reply was lost."""
        if lost:
            self._lose(lost)
            self.narrow()
        return self._return(lost)

    # Receipt without acks

    def hear(self, seq: int) -> None:
        """Record that the client has received the entries up to this number."""
        self._heard = max(self._heard, seq)

    def return_lost(self, *, is_whole: bool) -> list[Entry]:
        """Return the entries of a lost reply to the queue, except those that the client received.

        With `is_whole`, a reply arrives completely or not at all, so receipt of one entry proves
        receipt of all.
        """
        if is_whole and self._heard > self._last_seq:
            return []
        handed = self.in_flight().items()
        lost = [entry for seq, entry in handed if seq > self._heard and not entry.is_pending]
        return self._return_as_lost(lost)

    # Writing

    def leave_late(self, batch: Batch, now: float) -> None:
        """Restart the response timeout of this batch: the store delayed its reply."""
        if batch is self._fresh:
            batch.handed_at = now
            return
        for seq in batch.numbers:
            entry = self._handed.get(seq)
            if entry is not None:
                entry.handed_at, entry.due = now, self._due(now)

    def written(self, batch: Batch) -> Sequence[Message]:
        """Record that the transport took this batch. Returns the messages that this settles."""
        if self.settling is not _WRITTEN:
            return ()
        return self._settle_all() if batch is self._fresh else self.settle(batch.numbers)

    def return_unwritten(self, batch: Batch) -> list[Entry]:
        """Return a batch to the queue of which the transport wrote nothing."""
        return self._return(self._unsent(batch))

    def return_unsent(self, batch: Batch) -> list[Entry]:
        """Return a batch to the queue whose reply leaves without it: it counts as lost.

        The client learns the number of the batch, but an ack of it settles nothing.
        """
        lost = self._unsent(batch)
        messages = set(map(id, batch.messages))
        for entry in self.tried():
            if id(entry.message) in messages:
                # It may already be in flight again, with a later reply that has not left yet.
                is_with_later = entry.seq in self._handed and entry.seq not in batch.numbers
                entry.batch = self.batch if is_with_later else 0
        return self._return_as_lost(lost)

    def _unsent(self, batch: Batch) -> list[Entry]:
        """Return the entries that are in flight with this batch, which was not sent."""
        handed = self.in_flight()
        entries = [handed[seq] for seq in batch.numbers if seq in handed]
        for entry in entries:
            # A message that was never written cannot be the reason why the receiver failed.
            entry.was_alone = False
            if entry.batch == batch.number:
                entry.batch = 0
        return entries

    # Acks and verdicts

    def acknowledge(self, batch: int) -> Sequence[Message]:
        """Settle the batches up to this one. A number outside 0..last settles nothing."""
        if (
            batch == self.batch
            and not (self.returned or self.has_pending)
            and self.settling is _BATCH
        ):
            self.is_restored = False
            return self._settle_all()
        if self.is_restored and batch > self.batch:
            self._believe(batch)
        self.is_restored = False
        if not 0 <= batch <= self.batch:
            self._counters.acks_out_of_range += 1
            return ()
        if self.settling is not _BATCH:
            return ()
        passed = [
            seq
            for seq, entry in self.in_flight().items()
            if entry.batch <= batch and not entry.is_pending
        ]
        # Returned entries that arrived after all and were not handed over again.
        passed += [
            seq
            for seq, entry in self.returned.items()
            if 0 < entry.batch <= batch and (not entry.until or batch <= entry.until)
        ]
        if passed:
            self._repeats = 0
        return self.settle(passed)

    def _believe(self, batch: int) -> None:
        """Go on behind a batch that the store does not know, nor perhaps refusals before it."""
        self.batch = batch
        if self.gives_verdicts:
            # They come again: this ack says nothing about them.
            for entry in self.tried():
                entry.batch = batch + 1 if entry.is_in_flight else 0

    def _settle_all(self) -> Sequence[Message]:
        """Settle everything in flight. The common case: the receiver acked all of it."""
        fresh, self._fresh = self._fresh, None
        settled: Sequence[Message]
        if fresh is not None:
            settled = fresh.messages
        else:
            settled = [entry.message for entry in self._handed.values()]
            self._handed.clear()
        if settled:
            self._repeats = 0
            self.widen(len(settled))
        self._counters.acked += len(settled)
        self._leave(settled)
        return settled

    def settle(self, seqs: Iterable[int]) -> Sequence[Message]:
        """Settle these numbers as acked. Unknown ones are ignored."""
        settled = [entry.message for entry in self.remove(seqs)]
        self.widen(len(settled))
        self._counters.acked += len(settled)
        return settled

    # Batch size after failures

    def narrow(self) -> None:
        """Hand over one entry at a time after a failure, to find the message that causes it."""
        if self.gives_verdicts:
            self.window = 1

    def widen(self, count: int) -> None:
        """Allow larger batches again after the receiver has settled `count` entries."""
        if self.window:
            self.window += count

    def room(self, limit: int) -> int:
        """Return how many entries may be handed over together; no limit if negative."""
        window = self.window
        return window if window and not 0 <= limit <= window else limit

    @property
    def is_blocked(self) -> bool:
        """Whether nothing may be handed over while the entries in flight are."""
        if self.records is None:
            return False
        return any(each.blocks(self._handed, self.settling) for each in self.records)

    def coming_again(self) -> list[Entry]:
        """Return the entries at the start of the next batch, in the order of `place`."""
        # If an entry was redelivered while the receiver processed a later one, it comes after that
        # one.
        return sorted([*self.unanswered(), *self.returned.values()], key=by_place)

    def find(self, seq: int) -> Entry | None:
        """Return the entry whose last number this is, as the current client knows it."""
        entry = self.in_flight().get(seq)
        if entry is None and seq > self._former_seq:
            return self.returned.get(seq)
        return entry

    def is_earlier(self, seq: int) -> bool:
        """Whether the current client knows this number, and no entry has it any more."""
        return seq > self._former_seq and self.find(seq) is None

    def remove(self, seqs: Iterable[int]) -> list[Entry]:
        """Remove these entries. The caller counts their outcome."""
        taken, handed = [], self.in_flight()
        for seq in seqs:
            entry = handed.pop(seq, None)
            if entry is None:
                entry = self.find(seq)
                if entry is None:
                    continue
                del self.returned[seq]
                self._untrack_lifetimes((entry.message,))
            taken.append(entry)
        self._leave([entry.message for entry in taken])
        return taken

    def remove_entries(self, entries: Sequence[Entry]) -> None:
        """Remove these entries, in flight or returned, even if their numbers are outdated."""
        for entry in entries:
            (self._handed if entry.seq in self._handed else self.returned).pop(entry.seq)
        messages = [entry.message for entry in entries]
        self._untrack_lifetimes(messages)
        self._leave(messages)

    # Returns to the queue

    def return_from(self, since: int = 0) -> list[Entry]:
        """Return entries to the queue, from this number on, ahead of all others.

        The receiver has seen them and wants them again, so an ack of an earlier batch no longer
        settles them.
        """
        return self.return_open([entry for entry in self.tried() if entry.seq >= since])

    def return_open(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return entries to the queue, unless they are there already. Earlier acks settle none."""
        for entry in entries:
            entry.batch = 0
        back = [entry for entry in entries if entry.is_in_flight]
        if back:
            self.narrow()
        return self._return(back)

    def return_all(self) -> list[Entry]:
        """Return all entries to the queue after a loss of contact. Acks may still arrive."""
        entries = list(self.in_flight().values())
        for entry in entries:
            if entry.is_pending:
                entry.batch = 0
        if entries:
            self.narrow()
        return self._return(entries)

    def return_for_takeover(self) -> list[Entry]:
        """Return all entries to the queue for the next client, which counts batches from 1."""
        back = self.return_from()
        for entry in back:
            entry.redelivered += 1
        self._counters.redelivered += len(back)
        self.batch = self._repeats = 0
        self.is_restored = False
        self._former_seq = self.seq
        return list(self.returned.values())

    def _return(self, entries: list[Entry]) -> list[Entry]:
        for entry in entries:
            del self._handed[entry.seq]
            entry.is_pending = False
            entry.due = 0.0
            if entry.message.expires_ms:
                self.track_lifetime(entry.message)
        if entries:
            self._line_up([*self.returned.values(), *entries])
        return entries

    def _line_up(self, entries: Iterable[Entry]) -> None:
        """Add these to the returned entries, in the order of the next hand-over."""
        entries = sorted(entries, key=by_place)
        for entry in entries:
            entry.is_in_flight = False
        self.returned = {entry.seq: entry for entry in entries}

    def keep_pending(self, seqs: Collection[int]) -> None:
        """Record that the receiver is processing exactly these entries."""
        self.has_pending = bool(seqs)
        # A receiver may not have heard yet that it was handed an entry once more.
        earlier = sorted(seq for seq in seqs if self.is_earlier(seq))
        for seq, entry in self.in_flight().items():
            entry.is_pending = seq in seqs or entry.may_have_had(earlier)
            if seq in seqs:
                self.hear(seq)

    def first_due(self) -> float:
        """Return when the first response is due; zero if no timeout is running."""
        if self._fresh is not None:
            return self._due(self._fresh.handed_at)
        for entry in self._handed.values():
            return entry.due
        return 0.0

    # Expiry

    def track_lifetime(self, message: Message) -> None:
        """Track the lifetime of a message that waits, or waits again."""
        if self.expiring is None:
            self.expiring = []
        lifetimes.add(self.expiring, message)

    def _untrack_lifetimes(self, messages: Iterable[Message]) -> None:
        """Stop tracking the lifetimes of these messages."""
        if self.expiring:
            lifetimes.remove(self.expiring, messages)

    def _leave(self, messages: Sequence[Message]) -> None:
        if self.has_counted:
            release(messages)
        if len(messages) == self.count:
            self._forget()
        else:
            self.count -= len(messages)
            self.size -= sum([len(message.wire) for message in messages])

    def _forget(self) -> None:
        """Reset the state that lasts only until the queue is empty."""
        self.count = self.size = self.window = 0
        self.expiring = self.records = None
        self.is_mixed = self.has_counted = self.has_former = False
