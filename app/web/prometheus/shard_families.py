"""The families of metrics of a shard among others."""

from collections.abc import Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from holdfast.delivery.ports.other_shards import LogFigures
from holdfast.web.prometheus.door_figures import DoorFigures


def families_of(figures: LogFigures) -> Iterator[Metric]:
    """Yield what crosses to other shards, and from them."""
    yield CounterMetricFamily(
        "holdfast_log_entries_appended",
        "Messages and facts that the log for other shards has got. Only with several workers.",
        value=figures.appended,
    )
    yield CounterMetricFamily(
        "holdfast_log_entries_dropped",
        "Passing messages that other shards did not get, because the store took them too late.",
        value=figures.dropped,
    )
    yield CounterMetricFamily(
        "holdfast_linked_messages",
        "Messages that went to other shards directly, because they are not stored. Only with "
        "several workers.",
        value=figures.passed,
    )
    early = CounterMetricFamily(
        "holdfast_messages_early",
        "Messages that are not stored, and did not wait any longer for stored ones before them, by "
        "the store that was away. Only with several workers.",
        labels=["cause"],
    )
    for cause, count in figures.early.items():
        early.add_metric([cause], count)
    yield early
    yield _by_sender(
        "holdfast_log_entries_taken",
        "Entries that this shard has taken from the log of another one.",
        figures.taken,
    )
    yield _by_sender(
        "holdfast_log_entries_skipped",
        "Entries that were removed from a log, because this shard was behind and needed none.",
        figures.skipped,
    )
    yield _by_sender(
        "holdfast_log_entries_missing",
        "Entries of another shard that did not arrive here, as far as their number is known.",
        figures.missing,
    )
    yield _by_sender(
        "holdfast_log_entries_beyond",
        "Entries that this shard has read in the log of another one, whose store has lost them.",
        figures.beyond,
    )
    behind = GaugeMetricFamily(
        "holdfast_log_behind_seconds",
        "For how long the oldest entry of this shard has waited for another one, which says what "
        "it has taken every second or two.",
        labels=["from", "to"],
    )
    for shard, seconds in figures.behind_s.items():
        behind.add_metric([str(figures.shard), str(shard)], seconds)
    yield behind


def door_families_of(figures: DoorFigures) -> Iterator[Metric]:
    """Return how much of what clients ask a worker belongs to others."""
    yield _by_receiver(
        "holdfast_requests_forwarded",
        "Requests and WebSocket messages that this worker has passed on to another one.",
        figures.forwarded,
    )
    yield _by_receiver(
        "holdfast_connections_given",
        "Connections that this worker has given to another one, which has their sessions.",
        figures.given,
    )
    if figures.host:
        host = GaugeMetricFamily(
            "holdfast_shard_host",
            "1, with the name of the host that has the shard. Only with many machines.",
            labels=["host"],
        )
        host.add_metric([figures.host], 1)
        yield host


def answering(shards: Mapping[int, bool]) -> Metric:
    """Return which workers are on the page that any of them shows."""
    family = GaugeMetricFamily(
        "holdfast_shard_answers",
        "Whether the worker of the shard has answered: its metrics are on this page. Only with "
        "several workers.",
        labels=["shard"],
    )
    for shard, has_answered in shards.items():
        family.add_metric([str(shard)], has_answered)
    return family


def restarted(restarts: Mapping[int, int]) -> Metric:
    """Return how often the supervisor has replaced workers that had ended."""
    family = CounterMetricFamily(
        "holdfast_shard_restarts",
        "Workers of the shard that had ended, so that the supervisor has started another one, "
        "since the last restart of all. Only with several workers.",
        labels=["shard"],
    )
    for shard, count in restarts.items():
        family.add_metric([str(shard)], count)
    return family


def _by_sender(name: str, meaning: str, counts: Mapping[int, int]) -> Metric:
    family = CounterMetricFamily(name, meaning, labels=["from"])
    for shard, count in counts.items():
        family.add_metric([str(shard)], count)
    return family


def _by_receiver(name: str, meaning: str, counts: Mapping[int, int]) -> Metric:
    family = CounterMetricFamily(name, meaning, labels=["to"])
    for shard, count in counts.items():
        family.add_metric([str(shard)], count)
    return family
