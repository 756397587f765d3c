"""Latencies of messages and rates of channels, measured only while an operator watches."""

from collections.abc import Collection, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from holdfast.delivery.basics.channels import REPLIES

if TYPE_CHECKING:
    from holdfast.delivery.messages.message import Message
    from holdfast.delivery.queues.queue import CallbackQueue
    from holdfast.delivery.queues.receivers import Receiver

# Receivers sampled in one turn, messages examined in each queue, and times kept between two
# readings.
_MOST_SAMPLES = 20
_DEPTH = 100
_MOST_TIMES = 2000
# How many channels are tracked.
_MOST_CHANNELS = 5000
# The weight of the last second, and the rate below which a channel counts as quiet.
_WEIGHT = 0.3
_QUIET = 0.02
_NS_PER_US = 1000


class Latencies(NamedTuple):
    """Times from receipt of messages to their hand-over, in microseconds."""

    seen: int
    p50: int
    p99: int
    longest: int


class QueueSample(NamedTuple):
    """A queue before a hand-over: the number of new messages, and when the first arrived (ns)."""

    queue: "CallbackQueue"
    new: int
    received_at: int


class LatencySampler:
    """Samples publishes, and queues before and after their hand-over."""

    def __init__(self, now: float) -> None:
        self._times: list[int] = []
        # Numbers of receivers whose queues were held back until now.
        self._excused: set[int] = set()
        self._counts: dict[str, int] = {}
        self._read_at = now
        # Messages per second on each channel that is not quiet.
        self.rates: dict[str, float] = {}

    def published(self, channel: str) -> None:
        """Count a message; channels beyond the limit and reply channels are ignored."""
        if channel.startswith(REPLIES):
            return
        counts = self._counts
        if channel in counts:
            counts[channel] += 1
        elif len(counts) < _MOST_CHANNELS:
            counts[channel] = 1

    def excuse(self, receiver: "Receiver") -> None:
        """Skip the next measurement of this receiver, because its queue was held back."""
        self._excused.add(receiver.number)

    def sample(self, receivers: "Sequence[Receiver]", held: Collection[str]) -> list[QueueSample]:
        """Sample the queues of ready receivers. `held` are the channels held back."""
        samples = []
        if len(self._times) < _MOST_TIMES:
            for receiver in receivers[:_MOST_SAMPLES]:
                queue = receiver.queue
                first = first_free(queue.new, held if receiver.can_refuse else (), _DEPTH)
                if first is not None and receiver.number not in self._excused:
                    samples.append(QueueSample(queue, len(queue.new), first.id))
        self._excused.clear()
        return samples

    def measured(self, samples: "Sequence[QueueSample]", now_ns: int) -> None:
        """Record latencies after the hand-over. A queue that did not shrink handed nothing over."""
        self._times += [
            max(0, now_ns - sample.received_at) // _NS_PER_US
            for sample in samples
            if len(sample.queue.new) < sample.new
        ]

    def read(self, now: float) -> Latencies | None:
        """Return the latencies recorded since the last reading, and update the rates."""
        self._settle_rates(max(now - self._read_at, 0.001))
        self._read_at = now
        times, self._times = sorted(self._times), []
        if not times:
            return None
        return Latencies(len(times), _part(times, 0.5), _part(times, 0.99), times[-1])

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


def first_free(
    messages: "Sequence[Message]", held: Collection[str], depth: int
) -> "Message | None":
    """Return the first message, among the first `depth`, whose channel is not held back."""
    if not held:
        return messages[0] if messages else None
    for message in islice(messages, depth):
        if message.channel not in held:
            return message
    return None


def _part(times: Sequence[int], part: float) -> int:
    return times[min(int(len(times) * part), len(times) - 1)]
