"""How long messages take, and where they go: measured only while somebody looks."""

from collections.abc import Collection, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from app.delivery.messages import Message
    from app.delivery.queue import CallbackQueue
    from app.delivery.receivers import Receiver

# Receivers looked at in one turn, messages looked at in the queue of each, and times that are kept
# between two readings.
_LOOKS = 20
_DEPTH = 100
_MOST_TIMES = 2000
# Channels that are told apart.
_MOST_CHANNELS = 5000
# How much the latest second weighs, and what counts as nothing any more.
_WEIGHT = 0.3
_QUIET = 0.02
_NS_PER_US = 1000


class Times(NamedTuple):
    """From the receipt of messages to their hand-over, in microseconds."""

    seen: int
    p50: int
    p99: int
    longest: int


class Look(NamedTuple):
    """A queue before something of it is handed over: how long, and when its first came (ns)."""

    queue: "CallbackQueue"
    waiting: int
    received_at: int


class Watch:
    """Is told of publishes, and shown queues before and after something of them is handed over."""

    __slots__ = ("_counts", "_excused", "_read_at", "_times", "rates")

    def __init__(self, now: float) -> None:
        self._times: list[int] = []
        # Numbers of receivers whose queues did not flow until now.
        self._excused: set[int] = set()
        self._counts: dict[str, int] = {}
        self._read_at = now
        # Messages per second on each channel that is not quiet.
        self.rates: dict[str, float] = {}

    def published(self, channel: str) -> None:
        """One more message; of channels beyond a bound nothing is known."""
        counts = self._counts
        if channel in counts:
            counts[channel] += 1
        elif len(counts) < _MOST_CHANNELS:
            counts[channel] = 1

    def excuse(self, receiver: "Receiver") -> None:
        """What waits for it now was held back: the time that this took is not measured."""
        self._excused.add(receiver.number)

    def look(self, receivers: "Sequence[Receiver]", held: Collection[str]) -> list[Look]:
        """The queues of those who are about to be told; `held` are channels that do not flow."""
        looks = []
        if len(self._times) < _MOST_TIMES:
            for receiver in receivers[:_LOOKS]:
                queue = receiver.queue
                first = first_free(queue.waiting, held if receiver.can_refuse else (), _DEPTH)
                if first is not None and receiver.number not in self._excused:
                    looks.append(Look(queue, len(queue.waiting), first.id))
        self._excused.clear()
        return looks

    def told(self, looks: "Sequence[Look]", now_ns: int) -> None:
        """They were told; from whom nothing was taken got nothing."""
        self._times += [
            max(0, now_ns - look.received_at) // _NS_PER_US
            for look in looks
            if len(look.queue.waiting) < look.waiting
        ]

    def read(self, now: float) -> Times | None:
        """The times noted since the last reading; the rates are what they are now."""
        self._settle_rates(max(now - self._read_at, 0.001))
        self._read_at = now
        times, self._times = sorted(self._times), []
        if not times:
            return None
        return Times(len(times), _part(times, 0.5), _part(times, 0.99), times[-1])

    def _settle_rates(self, elapsed_s: float) -> None:
        counts, self._counts = self._counts, {}
        rates = {}
        for channel in self.rates.keys() | counts.keys():
            latest = counts.get(channel, 0) / elapsed_s
            rate = self.rates.get(channel, latest)
            rate += (latest - rate) * _WEIGHT
            if rate >= _QUIET:
                rates[channel] = rate
        self.rates = rates


def first_free(waiting: "Sequence[Message]", held: Collection[str], depth: int) -> "Message | None":
    """The first message whose channel is not held back; only so many are looked at."""
    if not held:
        return waiting[0] if waiting else None
    for message in islice(waiting, depth):
        if message.channel not in held:
            return message
    return None


def _part(times: Sequence[int], part: float) -> int:
    return times[min(int(len(times) * part), len(times) - 1)]
