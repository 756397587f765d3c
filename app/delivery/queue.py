"""The callback queue: everything that waits for one receiver, unacknowledged batches first."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.delivery.counters import Counters, Reason
from app.delivery.messages import Message

# A receiver that never acknowledges gets its batches again at once this many times, ...
_FREE_REPEATS = 3
# ... then after a pause that doubles from the first to the second of these (seconds).
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 1.0


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """How much may wait for one receiver, the unacknowledged head counted in."""

    entries: int = 10_000
    bytes: int = 16 * 1024 * 1024


class CallbackQueue:
    """One receiver's entries, in order: handed-over ones at the head, waiting ones behind.

    Plain receivers: what the transport has taken is settled (`written`). Acknowledging receivers:
    each hand-over is a batch and settles when that batch, or a later one, is acknowledged.
    """

    __slots__ = (
        "_base",
        "_counters",
        "_limits",
        "_marks",
        "_repeats",
        "batch",
        "entries",
        "handed",
        "is_overflowing",
        "size",
    )

    def __init__(self, limits: QueueLimits, counters: Counters) -> None:
        self._limits = limits
        self._counters = counters
        self.entries: list[Message] = []
        self.size = 0
        self.handed = 0
        self.batch = 0
        # Positions counted from the first entry ever: (batch, end of what it carried). Only batches
        # that carried something new leave a mark, so there are never more marks than entries.
        self._marks: list[tuple[int, int]] | None = None
        self._base = 0
        self._repeats = 0
        # Something was discarded for want of room since this was empty the last time.
        self.is_overflowing = False

    @property
    def is_acknowledged(self) -> bool:
        return self._marks is not None

    def acknowledge_batches(self) -> None:
        """From now on entries settle by `acknowledge` instead of by `written`."""
        self._marks = []

    def offer(self, message: Message) -> bool:
        """Take the message; False if a limit stands against it, which is counted."""
        size = len(message.wire)
        if len(self.entries) >= self._limits.entries:
            self._counters.discarded[Reason.OVERFLOW_ENTRIES] += 1
            return False
        if self.size + size > self._limits.bytes:
            self._counters.discarded[Reason.OVERFLOW_BYTES] += 1
            return False
        self.entries.append(message)
        self.size += size
        return True

    def has_urgent(self) -> bool:
        """Whether anything but lazy messages is here."""
        for message in self.entries:  # noqa: SIM110 - a generator costs every connect
            if message.linger_s is None:
                return True
        return False

    def hand_over(self) -> Sequence[Message]:
        """Everything here, oldest first. The caller must write it, then call `written`."""
        entries = self.entries
        if self._marks is None:
            self.handed = len(entries)
            return entries
        self.batch += 1
        if self.handed:
            self._repeats += 1
            self._counters.redelivered += self.handed
        if len(entries) > self.handed:
            self._marks.append((self.batch, self._base + len(entries)))
            self.handed = len(entries)
        return entries

    def returned(self) -> None:
        """The transport took nothing: a plain receiver's entries wait again."""
        if self._marks is None:
            self.handed = 0

    def written(self) -> None:
        """The transport took what was handed over: a plain receiver's entries are acked."""
        if self._marks is None and self.handed:
            self._settle(self.handed)

    def acknowledge(self, batch: int) -> None:
        """Settle the batches up to this one; a number outside 0..last settles nothing."""
        if not 0 <= batch <= self.batch:
            self._counters.acks_out_of_range += 1
            return
        marks = self._marks
        if not marks or marks[0][0] > batch:
            return
        passed = sum(1 for number, _ in marks if number <= batch)
        end = marks[passed - 1][1]
        del marks[:passed]
        self._repeats = 0
        self._settle(end - self._base)

    def pause_s(self) -> float:
        """How long the receiver must wait for batches that it did not acknowledge before."""
        excess = self._repeats - _FREE_REPEATS
        if excess < 0 or not self.handed:
            return 0.0
        return min(_FIRST_PAUSE_S * 2.0 ** min(excess, 16), _LONGEST_PAUSE_S)

    def discard(self, reason: Reason) -> None:
        """Nothing here will be delivered any more."""
        self._counters.discarded[reason] += len(self.entries)
        self._drop(len(self.entries))

    def discard_handed(self, reason: Reason) -> None:
        """What was handed over will not be acknowledged any more, nor sent again."""
        self._counters.discarded[reason] += self.handed
        self._drop(self.handed)

    def _settle(self, count: int) -> None:
        self._counters.acked += count
        self._drop(count)

    def _drop(self, count: int) -> None:
        entries = self.entries
        if count == len(entries):
            entries.clear()
            self.size = 0
            self.handed = 0
            self.is_overflowing = False
        else:
            self.size -= sum(len(message.wire) for message in entries[:count])
            del entries[:count]
            self.handed = max(0, self.handed - count)
        self._base += count
