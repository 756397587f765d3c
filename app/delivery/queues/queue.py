"""The callback queue of one receiver: entries in flight first."""

from bisect import bisect_left, insort
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from sys import maxsize
from typing import Final

from holdfast.delivery.basics.counters import Counters
from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.messages.batch import Batch
from holdfast.delivery.messages.entries import Entry, SettledBy
from holdfast.delivery.messages.former_attempts import former_of, mark_redelivered
from holdfast.delivery.messages.message import ORDINARY_PRIORITY, Message, release
from holdfast.delivery.queues import lifetimes
from holdfast.delivery.queues.in_flight import InFlight


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """The limits of one receiver's queue. Entries in flight count."""

    entries: int = maxsize
    bytes: int = maxsize


# Batches of a receiver that never acks are sent again this many times without a pause, ...
_FREE_REPEATS = 3
# ... then after a pause that doubles from the first to the second of these (seconds).
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 1.0

_WRITTEN: Final = SettledBy.WRITTEN
# Up to this many messages are removed one by one; for more, the queue is rebuilt.
_FEW: Final = 16


def _precedence(message: Message) -> int:
    return -message.priority


def rightful_place(message: Message) -> tuple[int, int]:
    return -message.priority, message.id


class CallbackQueue(InFlight):
    """The entries of one receiver: in flight, then returned, then `new`.

    New messages wait by priority and id, in whichever order they come: those of different workers
    come by different ways, but ids are in the order in which messages were accepted. A loaded queue
    has the same order.
    """

    __slots__ = (
        "_most_bytes",
        "_most_entries",
        "coming",
        "coming_bytes",
        "new",
    )

    def __init__(self, limits: QueueLimits, counters: Counters) -> None:
        super().__init__(counters)
        self._most_entries, self._most_bytes = limits.entries, limits.bytes
        self.new: list[Message] = []
        # Addressed messages that the store is about to have, and their size.
        self.coming = self.coming_bytes = 0

    def limit(self, entries: int | None, bytes: int | None) -> None:
        """Lower the limits for this receiver."""
        self._most_entries = min(self._most_entries, entries or self._most_entries)
        self._most_bytes = min(self._most_bytes, bytes or self._most_bytes)

    def take_terms(self, other: "CallbackQueue") -> None:
        """Adopt the limits and options of a queue that was never used."""
        self._most_entries, self._most_bytes = other._most_entries, other._most_bytes
        self.settling, self.gives_verdicts = other.settling, other.gives_verdicts
        self.response_timeout_s = other.response_timeout_s
        if not self.gives_verdicts:
            self.window = 0

    # Adding

    def offer(self, message: Message) -> Reason | None:
        """Add the message, or return the reason why the queue refuses it."""
        if self.count >= self._most_entries:
            return Reason.OVERFLOW_ENTRIES
        size = self.size + len(message.wire)
        if size > self._most_bytes:
            return Reason.OVERFLOW_BYTES
        self.count += 1
        self.size = size
        new = self.new
        is_behind = message.is_initial or not new or new[-1].id < message.id
        if is_behind and not self.is_mixed and message.priority == ORDINARY_PRIORITY:
            new.append(message)
        else:
            self._rank(message)
        if message.expires_ms:
            self.track_lifetime(message)
        return None

    def lacks_room(self, size: int) -> Reason | None:
        """Return the reason why the queue has no room for an addressed message, or None."""
        if self.count + self.coming >= self._most_entries:
            return Reason.OVERFLOW_ENTRIES
        is_too_much = self.size + self.coming_bytes + size > self._most_bytes
        return Reason.OVERFLOW_BYTES if is_too_much else None

    def reserve(self, size: int) -> None:
        """Reserve room for an accepted addressed message."""
        self.coming += 1
        self.coming_bytes += size

    def release(self, size: int) -> None:
        """Release reserved room: the message is in the queue, or will not come."""
        self.coming -= 1
        self.coming_bytes -= size

    def room_left(self) -> tuple[int, int]:
        """Return how many entries and bytes still fit."""
        return self._most_entries - self.count, self._most_bytes - self.size

    def fits(self, size: int) -> bool:
        """Whether a message of this size fits into the empty queue."""
        return size <= self._most_bytes

    def insert(self, message: Message) -> None:
        """Add a message from another queue. There is room."""
        self.count += 1
        self.size += len(message.wire)
        self._rank(message)
        if message.expires_ms:
            self.track_lifetime(message)
        if former_of(message) is not None:
            self.has_former = True
        self.tell_entered(message)

    def tell_entered(self, message: Message) -> None:
        """Tell the records of the message that this queue has it, if they count queues."""
        if message.is_counted:
            self.has_counted = True
            for record in message.records or ():
                record.entered_queues(1)

    def mark_redelivered(self, message: Message) -> None:
        """Let a new message say that it may have been handed over before."""
        mark_redelivered(message)
        self.has_former = True

    def recall(self) -> None:
        """Turn new messages that other sessions handed over before into returned entries."""
        tried = [message for message in self.new if former_of(message) is not None]
        self.new = [message for message in self.new if former_of(message) is None]
        for message in tried:
            self.seq += 1
            entry = Entry(message)
            # No client got this number. It preserves the entry's place.
            entry.seq = entry.place = self.seq
            self.returned[entry.seq] = entry
        self.has_former = False

    def _rank(self, message: Message) -> None:
        """Let the message wait where its priority and id place it.

        A copy from a history waits behind others: who asks for histories says in which order.
        """
        self.is_mixed = True
        new = self.new
        if message.is_initial:
            insort(new, message, key=_precedence)
        # Most come in order, thousands of them when a session ends.
        elif not new or rightful_place(new[-1]) <= rightful_place(message):
            new.append(message)
        else:
            insort(new, message, key=rightful_place)

    # Going on in another process

    def numbers(self) -> list[int]:
        """Return the numbers with which the next process continues."""
        return [
            *(self.batch, self.seq, self._last_seq, self._heard, self._former_seq),
            *(self._repeats, self.window),
        ]

    def go_on(self, numbers: Sequence[int]) -> None:
        """Continue with the numbers of an earlier process."""
        self.batch, self.seq, self._last_seq, self._heard, self._former_seq = numbers[:5]
        self._repeats, self.window = numbers[5:]

    def restore_new(self, messages: Sequence[Message]) -> None:
        """Add new messages of an earlier process behind the others: that was their place."""
        self.count += len(messages)
        self.new += messages
        for message in messages:
            self.size += len(message.wire)
            if message.expires_ms:
                self.track_lifetime(message)
            if message.records and former_of(message) is not None:
                self.has_former = True

    def restore_entry(self, entry: Entry) -> None:
        """Add an entry of an earlier process, in flight or returned, behind the others."""
        self._count_in(entry.message)
        if entry.is_in_flight:
            self.in_flight()[entry.seq] = entry
            return
        self.returned[entry.seq] = entry
        if entry.message.expires_ms:
            self.track_lifetime(entry.message)

    def _count_in(self, message: Message) -> None:
        self.count += 1
        self.size += len(message.wire)

    # Handing over

    def has_news(self, held: Collection[str] = ()) -> bool:
        """Whether anything can be handed over now, except on held channels."""
        if self.is_blocked:
            return False
        if (not held or self.settling is _WRITTEN) and (self.new or self.returned):
            return True
        if self.unanswered():
            return True
        return any(self._is_free(message, held) for message in self.new) or any(
            self._is_free(entry.message, held) for entry in self.returned.values()
        )

    def has_urgent(self) -> bool:
        """Whether anything other than lazy messages can be handed over."""
        for message in self.new:
            if message.linger_s is None:
                return True
        return any(entry.message.linger_s is None for entry in self.coming_again())

    def next_batch(self, now: float, limit: int = -1, held: Collection[str] = ()) -> Batch:
        """Hand over the next batch: unacked entries, then returned ones, then new messages.

        It contains at most `limit` messages and none of held channels, except for receivers that
        cannot refuse messages.
        """
        if self.settling is _WRITTEN:
            held = ()
        self.batch += 1
        if self.has_tried:
            batch = self._batch_with_repeats(now, limit, held)
        else:
            batch = Batch(
                self.batch, self.seq + 1, messages=self._take_new(limit, held), handed_at=now
            )
            if batch.messages:
                self._fresh = batch
        batch.size = self.count
        self._last_seq = self.seq
        self.seq += len(batch.messages)
        if self.expiring is not None:
            if self.new or self.returned:
                self._untrack_lifetimes(batch.messages)
            else:
                self.expiring = None
        if self.records is not None:
            going_on = [each for each in self.records if not each.is_over_after(batch.messages)]
            self.records = tuple(going_on) or None
        return batch

    def pause_s(self) -> float:
        """Return how long the receiver must wait before it gets unacked batches again."""
        excess = self._repeats - _FREE_REPEATS
        if excess < 0 or not (self.in_flight_count or self.returned):
            return 0.0
        return min(_FIRST_PAUSE_S * 2.0 ** min(excess, 16), _LONGEST_PAUSE_S)

    def settle_new(self) -> None:
        """Settle the new messages, which were written without a hand-over."""
        self._counters.acked += self.count
        if self.has_counted:
            release(self.new)
        self.new = []
        self._forget()

    def _batch_with_repeats(self, now: float, limit: int, held: Collection[str]) -> Batch:
        """Hand over the next batch of a receiver that has entries in flight or returned."""
        handed = self.in_flight()
        going, set_aside = self._take_tried(limit, held)
        new = self._take_new(limit if limit < 0 else limit - len(going), held)
        going += map(Entry, new)
        is_alone = len(going) == 1 and not handed
        due = self._due(now)
        for seq, entry in enumerate(going, self.seq + 1):
            entry.seq = seq
            entry.place = entry.place or seq
            if entry.until or not entry.batch:
                entry.batch, entry.until = self.batch, 0
            entry.attempts += 1
            entry.was_alone = is_alone
            entry.is_in_flight = True
            entry.handed_at = now
            entry.due = due
            handed[seq] = entry
        messages = [entry.message for entry in going]
        return Batch(
            self.batch,
            self.seq + 1,
            messages=messages,
            handed_at=now,
            entries=going,
            set_aside=set_aside,
        )

    def _is_free(self, message: Message, held: Collection[str]) -> bool:
        """Whether it may be handed over although some channels are held."""
        if message.channel not in held:
            return True
        return any(each.passes_hold(message) for each in self.records or ())

    def _take_tried(self, limit: int, held: Collection[str]) -> tuple[list[Entry], Sequence[Entry]]:
        """Take the entries to send again; also return unacked entries that must wait instead."""
        going, lost = self.coming_again(), self.unanswered()
        if lost:
            self._lose(lost)
            self._return(lost)
        staying: list[Entry] = []
        if held:
            staying = [entry for entry in going if not self._is_free(entry.message, held)]
            going = [entry for entry in going if self._is_free(entry.message, held)]
        if 0 <= limit < len(going):
            staying += going[limit:]
            going = going[:limit]
        self._line_up(staying)
        set_aside = [entry for entry in staying if entry.batch and not entry.until]
        for entry in set_aside:
            # An ack of this batch does not include them.
            entry.until = self.batch - 1
        return going, set_aside

    def _take_new(self, room: int, held: Collection[str]) -> Sequence[Message]:
        if not held and not 0 <= room < len(self.new):
            taken, self.new = self.new, []
            return taken
        free = [message for message in self.new if self._is_free(message, held)]
        taken = free if room < 0 else free[:room]
        gone = set(map(id, taken))
        self.new = [message for message in self.new if id(message) not in gone]
        return taken

    def ids(self) -> list[int]:
        """The ids of all messages in the queue."""
        return [message.id for message in self.messages()]

    def has_new(self, id: int) -> bool:
        """Whether the message with this id is here and was never handed over."""
        return any(message.id == id for message in self.new)

    def messages(self) -> list[Message]:
        """All messages in the queue: in flight, returned and new."""
        return [*[entry.message for entry in self.tried()], *self.new]

    def entries(self) -> list[Entry]:
        """All messages as entries, in order. New ones get temporary entries."""
        return [*self.tried(), *map(Entry, self.new)]

    def _routed(self, key: str) -> list[Message]:
        """Return messages delivered to the session with this key only because of subscriptions."""
        return [m for m in self.messages() if m.is_routed and not m.is_addressed_to(key)]

    def routed_channels(self, key: str) -> set[str]:
        """The channels of messages delivered only because of subscriptions."""
        return {message.channel for message in self._routed(key)}

    # Removing

    def remove_expired(self, now_ms: int, most: int | None) -> list[Message]:
        """Remove up to `most` waiting messages that have expired. The caller counts them."""
        expiring = self.expiring
        if not expiring or expiring[0].expires_ms > now_ms:
            return []
        over = lifetimes.remove_expired(expiring, now_ms, most)
        if len(over) > _FEW or not all(map(self._remove, over)):
            gone = set(map(id, over))
            self.new = [m for m in self.new if id(m) not in gone]
            self.returned = {n: e for n, e in self.returned.items() if id(e.message) not in gone}
        self._leave(over)
        return over

    def _remove(self, message: Message) -> bool:
        """Remove a new message, if it is where its priority and id place it."""
        place = bisect_left(self.new, rightful_place(message), key=rightful_place)
        if place == len(self.new) or self.new[place] is not message:
            return False
        del self.new[place]
        return True

    def remove_routed(
        self, key: str, channels: Collection[str], histories: Collection[str]
    ) -> Sequence[Message]:
        """Remove these channels' messages that only subscriptions brought. The caller counts them.

        For channels in `histories`, only messages from the history are removed.
        """
        taken = [
            message
            for message in self._routed(key)
            if message.channel in channels or (message.is_initial and message.channel in histories)
        ]
        self.remove_messages(taken)
        return taken

    def exchange(self, message: Message, copy: Message) -> None:
        """Replace a waiting message by a copy of it."""
        if self._remove(message):
            self._untrack_lifetimes((message,))
            self._leave((message,))
        else:
            self.remove_messages((message,))
        self.insert(copy)

    def remove_messages(self, taken: Sequence[Message]) -> None:
        """Remove these messages, in flight, returned or new. The caller counts them."""
        gone = set(map(id, taken))
        self._handed = {n: e for n, e in self.in_flight().items() if id(e.message) not in gone}
        self.returned = {n: e for n, e in self.returned.items() if id(e.message) not in gone}
        self.new = [m for m in self.new if id(m) not in gone]
        self.expiring = [m for m in self.expiring or () if id(m) not in gone]
        self._leave(taken)

    def clear(self) -> None:
        """Remove everything. The caller has counted it."""
        if self.has_counted:
            release(self.messages())
        self._fresh = None
        self._handed.clear()
        self.returned.clear()
        self.new = []
        self._forget()
