"""The families of metrics of histories, and of reading them without a session."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from holdfast.bayeux.server import Bayeux


def history_families(bayeux: Bayeux) -> Iterator[Metric]:
    """Yield what histories keep, and how they are read."""
    histories, streams = bayeux.state.histories, bayeux.streams
    yield GaugeMetricFamily(
        "holdfast_history_messages",
        "Messages in the histories of all channels; max_history limits them.",
        value=len(histories),
    )
    yield GaugeMetricFamily(
        "holdfast_history_bytes",
        "Size of the messages in all histories; max_history_bytes limits it.",
        value=histories.size,
    )
    yield CounterMetricFamily(
        "holdfast_history_dropped",
        "Messages that left a history early, to make room for newer ones.",
        value=histories.dropped,
    )
    yield GaugeMetricFamily(
        "holdfast_stream_readers",
        "Requests to /streams and /events that wait for messages; max_readers limits them.",
        value=len(bayeux.state.readers),
    )
    yield CounterMetricFamily(
        "holdfast_stream_messages_read",
        "Messages that readers have read, once for those that wait for the same.",
        value=streams.messages_read,
    )
