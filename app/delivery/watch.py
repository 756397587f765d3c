"""How long messages take, and where they go: measured only while somebody looks."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from app.delivery.receivers import Receiver

# Receivers looked at in one turn, and times that are kept between two readings.
LOOKS = 20
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


class Watch:
    """Is told of publishes, and shown who is about to be handed something."""

    __slots__ = ("_counts", "_read_at", "_times", "rates")

    def __init__(self, now: float) -> None:
        self._times: list[int] = []
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

    def told(self, receivers: "Sequence[Receiver]", now_ns: int) -> None:
        """These can be reached and get what waits for them now."""
        if len(self._times) < _MOST_TIMES:
            queues = [receiver.queue.waiting for receiver in receivers]
            self._times += [max(0, now_ns - each[0].id) // _NS_PER_US for each in queues if each]

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


def _part(times: Sequence[int], part: float) -> int:
    return times[min(int(len(times) * part), len(times) - 1)]
