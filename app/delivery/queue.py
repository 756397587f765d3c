"""The callback queue: everything that waits for one receiver, what it has in hands first."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from app.delivery.counters import Counters, Reason
from app.delivery.entries import Entry, Settling
from app.delivery.hands import Hands, by_end, by_place
from app.delivery.messages import ORDINARY_PRIORITY, Message


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """How much may wait for one receiver, what it has in hands counted in."""

    entries: int = 10_000
    bytes: int = 16 * 1024 * 1024


_BATCH, _WRITTEN = Settling.BATCH, Settling.WRITTEN
# So many messages are taken out one by one; for more the queue is made anew.
_FEW = 16


def _precedence(message: Message) -> int:
    return -message.priority


def _rightful_place(message: Message) -> tuple[int, int]:
    return -message.priority, message.id


class CallbackQueue(Hands):
    """One receiver's entries: what it has in hands, what came back, then what is `waiting`."""

    __slots__ = ("_most_bytes", "_most_entries", "waiting")

    def __init__(self, limits: QueueLimits, counters: Counters) -> None:
        super().__init__(counters)
        self._most_entries, self._most_bytes = limits.entries, limits.bytes
        self.waiting: list[Message] = []

    def limit(self, entries: int | None, bytes: int | None) -> None:
        """Take less than the operator allows."""
        self._most_entries = min(self._most_entries, entries or self._most_entries)
        self._most_bytes = min(self._most_bytes, bytes or self._most_bytes)

    def take_terms(self, other: "CallbackQueue") -> None:
        """Take what was agreed for a queue that was never used."""
        self._most_entries, self._most_bytes = other._most_entries, other._most_bytes
        self.settling = other.settling
        self.response_timeout_s = other.response_timeout_s
        if self.settling is _WRITTEN:
            self.window = 0

    # What comes in

    def offer(self, message: Message) -> Reason | None:
        """Take the message, or say which limit stands against it."""
        if self.count >= self._most_entries:
            return Reason.OVERFLOW_ENTRIES
        size = self.size + len(message.wire)
        if size > self._most_bytes:
            return Reason.OVERFLOW_BYTES
        self.count += 1
        self.size = size
        if self.is_mixed or message.priority != ORDINARY_PRIORITY or message.expires_ms:
            self._rank(message)
        else:
            self.waiting.append(message)
        return None

    def _rank(self, message: Message) -> None:
        """Put the message behind all that is at least as urgent; a late one where it would be."""
        self.is_mixed = True
        insort(self.waiting, message, key=_rightful_place if message.is_late else _precedence)
        if message.expires_ms:
            self.add_mortal(message)

    # What goes out

    def has_news(self, held: Collection[str] = ()) -> bool:
        """Whether there is anything to hand over now, but for what these channels have."""
        if self.keeps_suspect():
            return False
        if (not held or self.settling is _WRITTEN) and (self.waiting or self.returned):
            return True
        if self.settling is _BATCH and any(not entry.is_pending for entry in self.handed.values()):
            return True
        return any(self._is_free(message, held) for message in self.waiting) or any(
            self._is_free(entry.message, held) for entry in self.returned.values()
        )

    def has_urgent(self) -> bool:
        """Whether anything but lazy messages is to be handed over."""
        for message in self.waiting:
            if message.linger_s is None:
                return True
        for entry in self.returned.values():
            if entry.message.linger_s is None:
                return True
        return self.settling is _BATCH and any(
            not entry.is_pending and entry.message.linger_s is None
            for entry in self.handed.values()
        )

    def pour_out(self) -> None:
        """All that waited, and nothing else was here, is settled: it was written."""
        self._counters.acked += self.count
        self.waiting = []
        self.count = self.size = 0
        self.is_overflowing = self.is_mixed = False

    def pass_on(self, now: float, held: Collection[str] = ()) -> Sequence[Message] | None:
        """The usual batch: all that waits, for the first time, while nothing else is here.

        None if it is another: then it must be handed over.
        """
        if self._fresh or self._handed or self.returned:
            return None
        if held and any(message.channel in held for message in self.waiting):
            return None
        waiting, self.waiting = self.waiting, []
        self.mortals = None
        self.batch += 1
        self._last_seq = self.seq
        self.seq += len(waiting)
        self._fresh, self._fresh_at = waiting, now
        self.carries_repeats = False
        return waiting

    def hand_over(self, now: float, limit: int = -1, held: Collection[str] = ()) -> Sequence[Entry]:
        """The next batch: what was not acknowledged, what came back, what waits.

        At most `limit` entries, and none of the channels that are held back: but who cannot
        refuse anything is spared that.
        """
        if self.settling is _WRITTEN:
            held = ()
        # Asked for first: what has just been handed over belongs to the batch of before.
        handed = self.handed
        self.batch += 1
        self._last_seq = self.seq
        going = self._take_unacknowledged()
        if self.returned:
            going = sorted([*going, *self.returned.values()], key=by_place)
        going = self._set_aside(going, limit, held)
        if self.waiting:
            going += self._take_waiting(limit if limit < 0 else limit - len(going), held)
        is_alone = len(going) == 1 and not handed
        due = self._due(now)
        self.carries_repeats = any(entry.attempts for entry in going)
        for entry in going:
            self.seq += 1
            entry.seq = self.seq
            entry.place = entry.place or self.seq
            if entry.until or not entry.batch:
                entry.batch, entry.until = self.batch, 0
            entry.attempts += 1
            entry.was_alone = is_alone
            entry.handed_at = now
            entry.due = due
            handed[self.seq] = entry
        if self.mortals:
            self._drop_mortals([entry.message for entry in going])
        if self.tried is not None and any(entry.message is self.tried for entry in going):
            self.tried = None
        return going

    def _is_free(self, message: Message, held: Collection[str]) -> bool:
        """Whether it may be handed over although some channels are held back."""
        return message.channel not in held or message is self.tried

    def _set_aside(self, going: list[Entry], limit: int, held: Collection[str]) -> list[Entry]:
        """Those that may go; the others are returned."""
        staying: list[Entry] = []
        if held:
            staying = [entry for entry in going if not self._is_free(entry.message, held)]
            going = [entry for entry in going if self._is_free(entry.message, held)]
        if 0 <= limit < len(going):
            staying += going[limit:]
            going = going[:limit]
        self._line_up(staying)
        self.set_aside = [entry for entry in staying if entry.batch and not entry.until]
        for entry in self.set_aside:
            # Who acknowledges this batch has not got these with it.
            entry.until = self.batch - 1
        return going

    def _take_waiting(self, room: int, held: Collection[str]) -> Iterable[Entry]:
        if not held and room < 0:
            taken, self.waiting = self.waiting, []
            return map(Entry, taken)
        free = [message for message in self.waiting if self._is_free(message, held)]
        taken = free if room < 0 else free[:room]
        gone = set(map(id, taken))
        self.waiting = [message for message in self.waiting if id(message) not in gone]
        return map(Entry, taken)

    def ids(self) -> list[int]:
        """Of which messages there are entries."""
        return [message.id for message in self.messages()]

    def messages(self) -> list[Message]:
        """All that is in hands, came back, or waits."""
        entries = [*self.handed.values(), *self.returned.values()]
        return [*[entry.message for entry in entries], *self.waiting]

    def routed_channels(self) -> set[str]:
        """From which channels subscriptions have brought what is here."""
        return {message.channel for message in self.messages() if message.is_routed}

    # Ends

    def expire(self, now_ms: int, most: int | None = None) -> list[Message]:
        """Take out what waits and has outlived its time, at most so many; the caller counts it."""
        mortals = self.mortals
        if not mortals or mortals[0].expires_ms > now_ms:
            return []
        over = mortals[: bisect_right(mortals, now_ms, key=by_end)][:most]
        del mortals[: len(over)]
        if len(over) > _FEW or not all(map(self._remove, over)):
            gone = set(map(id, over))
            self.waiting = [m for m in self.waiting if id(m) not in gone]
            self.returned = {n: e for n, e in self.returned.items() if id(e.message) not in gone}
        self._leave(over)
        return over

    def _remove(self, message: Message) -> bool:
        """Take out one that waits, if it is in the place that it should have."""
        place = bisect_left(self.waiting, _rightful_place(message), key=_rightful_place)
        if place == len(self.waiting) or self.waiting[place] is not message:
            return False
        del self.waiting[place]
        return True

    def withdraw_routed(self, channels: Collection[str]) -> Sequence[Message]:
        """Take out what subscriptions have brought from these; the caller counts it."""
        taken = [m for m in self.messages() if m.is_routed and m.channel in channels]
        gone = set(map(id, taken))
        self._handed = {n: e for n, e in self.handed.items() if id(e.message) not in gone}
        self.returned = {n: e for n, e in self.returned.items() if id(e.message) not in gone}
        self.waiting = [m for m in self.waiting if id(m) not in gone]
        self.mortals = [m for m in self.mortals or () if id(m) not in gone]
        self._leave(taken)
        return taken

    def clear(self) -> list[Entry]:
        """Take out everything, in order; it is the caller's to count what became of it."""
        entries = [*self.handed.values(), *self.returned.values(), *map(Entry, self.waiting)]
        self._handed.clear()
        self.returned.clear()
        self.waiting = []
        self._leave([entry.message for entry in entries])
        return entries

    def take_first(self, count: int) -> Sequence[Message]:
        """Take out so many, in the order of their delivery; the caller counts what became of it."""
        taken = self.withdraw(list(self.handed)[:count])
        count -= len(taken)
        returned = list(self.returned.values())[:count]
        for entry in returned:
            del self.returned[entry.seq]
        count -= len(returned)
        waiting, self.waiting = self.waiting[:count], self.waiting[count:]
        left = [*(entry.message for entry in returned), *waiting]
        self._drop_mortals(left)
        self._leave(left)
        return [*(entry.message for entry in taken), *left]
