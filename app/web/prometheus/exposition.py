"""Writes metrics in the forms that Prometheus reads."""

from collections.abc import Callable, Iterable
from typing import Any, Final, cast

from prometheus_client import generate_latest, openmetrics
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from holdfast.web.prometheus.forms import Form

# Prometheus' client has no types for it.
_write: Final[Callable[[Collector], bytes]] = cast("Any", openmetrics.exposition).generate_latest


class _WithoutExamples(Collector):
    """The same metrics, without messages as examples of times."""

    def __init__(self, metrics: Collector) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return map(_without_examples, self._metrics.collect())


def written(metrics: Collector, form: Form) -> bytes:
    """Return the metrics as a text in this form."""
    if form is Form.TEXT:
        return generate_latest(metrics)
    return _write(metrics if form is Form.WITH_EXAMPLES else _WithoutExamples(metrics))


def _without_examples(metric: Metric) -> Metric:
    metric.samples = [sample._replace(exemplar=None) for sample in metric.samples]
    return metric
