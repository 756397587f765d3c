"""The families of histograms: how long messages, turns and calls of the store take."""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import Exemplar, HistogramMetricFamily, Metric

from holdfast.delivery.basics.times import NS_PER_S, Example, Histogram
from holdfast.delivery.ports.message_times import MessageTimes
from holdfast.web.admin.figure_readings import OwnFigures

# Returns the id of a message as operators know it.
IdOf = Callable[[int], str]


def time_families(times: MessageTimes, own: OwnFigures, id_of: IdOf) -> Iterator[Metric]:
    """Yield all histograms."""
    yield _by_receiver(
        "holdfast_hand_over_seconds",
        "Time from the receipt of a message to its first hand-over, for each receiver: plain ones "
        "acknowledge nothing, acking ones do, and durable ones are in the store, too.",
        times.hand_overs,
        id_of,
    )
    yield _by_receiver(
        "holdfast_ack_seconds",
        "Time from the receipt of a message to its acknowledgement, for each receiver.",
        times.acks,
        id_of,
    )
    yield _alone(
        "holdfast_turn_seconds",
        "Time that turns of the event loop take, from the first request to the last reply. Other "
        "clients wait meanwhile.",
        own.turns,
        id_of,
    )
    yield _alone(
        "holdfast_store_call_seconds",
        "Time from a call of the store to its answer.",
        own.calls,
        id_of,
    )


def _by_receiver(
    name: str, meaning: str, histograms: Mapping[str, Histogram], id_of: IdOf
) -> Metric:
    family = HistogramMetricFamily(name, meaning, labels=["receiver"])
    for kind, histogram in histograms.items():
        family.add_metric([kind], _buckets(histogram, id_of), histogram.total_ns / NS_PER_S)
    return family


def _alone(name: str, meaning: str, histogram: Histogram, id_of: IdOf) -> Metric:
    buckets, total_s = _buckets(histogram, id_of), histogram.total_ns / NS_PER_S
    return HistogramMetricFamily(name, meaning, buckets=buckets, sum_value=total_s)


def _buckets(
    histogram: Histogram, id_of: IdOf
) -> list[tuple[str, float] | tuple[str, float, Exemplar]]:
    """Return the bound of each bucket, how many times are not above it, and an example."""
    found: list[tuple[str, float] | tuple[str, float, Exemplar]] = []
    bounds = (*map(str, histogram.bounds_s), "+Inf")
    for bound, count, example in zip(bounds, histogram.read(), histogram.examples, strict=True):
        if example is None:
            found.append((bound, count))
        else:
            found.append((bound, count, _exemplar(example, id_of)))
    return found


def _exemplar(example: Example, id_of: IdOf) -> Exemplar:
    ended_at_s = (example.id + example.ns) / NS_PER_S
    return Exemplar({"message_id": id_of(example.id)}, example.ns / NS_PER_S, ended_at_s)
