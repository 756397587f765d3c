"""The families of what a process is, what it carries, and what it refuses."""

import platform
from collections.abc import Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from holdfast.bayeux.wire.errors import ErrorReply
from holdfast.distribution import core, release

# Reads files, so it is done once, when this is imported: in a thread.
_BUILD = [release(), platform.python_version(), core()]


def process_families(traffic: tuple[int, int], errors: Mapping[str, int]) -> Iterator[Metric]:
    """Yield the bytes of clients, errors by their reason, and the build."""
    received, sent = traffic
    yield CounterMetricFamily(
        "holdfast_received_bytes",
        "Bytes of messages that clients have sent, without heads of requests.",
        value=received,
    )
    yield CounterMetricFamily(
        "holdfast_sent_bytes",
        "Bytes of replies and events, without those that TLS adds, and without pages and the REST "
        "API.",
        value=sent,
    )
    family = CounterMetricFamily(
        "holdfast_errors",
        "Error replies by code and reason, as in the table of errors.",
        labels=["code", "reason"],
    )
    for error in ErrorReply:
        family.add_metric([str(error.code), error.reason], errors.get(error.reason, 0))
    yield family
    build = GaugeMetricFamily(
        "holdfast_build_info",
        "Always 1; the labels say which release this is, and on which Python it runs.",
        labels=["version", "python", "core"],
    )
    build.add_metric(_BUILD, 1)
    yield build
