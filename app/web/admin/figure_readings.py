"""Reads what a server counts and measures: by how much it rose since the last reading."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import sub
from typing import Final

from holdfast.bayeux.state.server_state import ServerState
from holdfast.delivery.basics.node import NS_PER_MS
from holdfast.delivery.basics.ranking import Ranking, RankingKind
from holdfast.delivery.basics.session_states import SessionInput
from holdfast.delivery.basics.times import STEPS_S, WAITS_S, Histogram
from holdfast.store.format.figure_records import COUNTS, FigureRow
from holdfast.web.admin.tallying import Waiting

# The histograms of a row in their order in the store, with the bounds of their buckets: add others
# behind these.
TIMES: Final[Mapping[str, Sequence[float]]] = {
    "hand_over_plain": WAITS_S,
    "hand_over_acking": WAITS_S,
    "hand_over_durable": WAITS_S,
    "ack_acking": WAITS_S,
    "ack_durable": WAITS_S,
    "turn": STEPS_S,
    "store_call": STEPS_S,
}
_ENDS: Final = (SessionInput.DISCONNECT, SessionInput.EXPIRE, SessionInput.FAIL)
_SENT_AS: Final = "client/"


@dataclass(frozen=True, slots=True)
class OwnFigures:
    """How long turns of the event loop take, and calls of the store; the bytes of clients."""

    turns: Histogram = field(default_factory=lambda: Histogram(STEPS_S))
    calls: Histogram = field(default_factory=lambda: Histogram(STEPS_S))
    # The bytes that clients have sent, and were sent.
    traffic: Callable[[], tuple[int, int]] = lambda: (0, 0)


class FigureReadings:
    """Takes readings. The first one has all since the process began.

    Args:
        replays: Returns how many replays have begun in this process.
    """

    def __init__(self, state: ServerState, own: OwnFigures, replays: Callable[[], int]) -> None:
        self._state = state
        self._own = own
        self._replays = replays
        self._counts = [0] * len(COUNTS)
        self._times = [[0] * (len(bounds) + 1) for bounds in TIMES.values()]
        self._errors: dict[str, int] = {}

    def begin(self) -> None:
        """Begin to count sessions: those until now were restored."""
        self._counts[COUNTS.index("created")] = self._state.sessions.created

    def row(self, at: int, served_ms: int, waiting: Waiting) -> FigureRow:
        """Return the row of the time since the last one, which began at this minute."""
        before, self._counts = self._counts, [*self._all_counts()]
        times_before, self._times = self._times, [*map(_buckets, self._histograms())]
        return FigureRow(
            at,
            served_ms,
            _rise(self._counts, before),
            [*self._lengths(waiting)],
            [_rise(*pair) for pair in zip(self._times, times_before, strict=True)],
        )

    def rankings(self) -> dict[RankingKind, Ranking]:
        """Return the rankings since the last time. Hand-overs must be counted before."""
        recent = self._state.ledger.rankings
        senders = recent.senders.take()
        # What the server itself publishes has no sender.
        senders.counts.pop("", None)
        errors = dict(self._state.counters.errors)
        rose = {name: count - self._errors.get(name, 0) for name, count in errors.items()}
        self._errors = errors
        return {
            RankingKind.SENDERS: senders.renamed(lambda name: name.removeprefix(_SENT_AS)),
            RankingKind.CHANNELS: recent.channels.take(),
            RankingKind.RECEIVERS: recent.receivers.take(),
            RankingKind.ERRORS: Ranking({name: count for name, count in rose.items() if count}),
        }

    def _all_counts(self) -> Iterator[int]:
        state, counters = self._state, self._state.counters
        yield counters.published
        yield counters.accepted
        books = counters.books()
        yield from (books[name] for name in ("acked", "dead", "expired", "discarded", "moved"))
        yield counters.redelivered
        yield counters.refused.total()
        yield counters.errors.total()
        yield state.sessions.created
        yield sum(state.sessions.ended[how.value] for how in _ENDS)
        yield state.requests.asked
        yield from self._own.traffic()
        # This process.
        yield 1
        yield state.hold_events.begun
        yield self._replays()

    def _lengths(self, waiting: Waiting) -> Iterator[int]:
        yield waiting.waiting
        yield waiting.in_flight
        oldest = waiting.oldest
        yield max(0, self._state.node.read() - oldest) // NS_PER_MS if oldest else 0
        yield len(self._state.sessions)
        yield self._state.store.letter_quota.all.count

    def _histograms(self) -> Iterator[Histogram]:
        times = self._state.ledger.times
        yield from times.hand_overs.values()
        yield from times.acks.values()
        yield self._own.turns
        yield self._own.calls


def _rise(after: Sequence[int], before: Sequence[int]) -> list[int]:
    return [max(0, each) for each in map(sub, after, before)]


def _buckets(histogram: Histogram) -> list[int]:
    """Return how many times are in each bucket, and behind the last bound."""
    return [after - before for before, after in pairwise((0, *histogram.totals()))]
