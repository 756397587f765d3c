"""Reads pages of metrics strictly, as Prometheus does."""

from collections.abc import Callable, Iterable
from typing import Any, cast

from prometheus_client.core import Metric
from prometheus_client.openmetrics import parser

# Prometheus' client has no types for it.
read_openmetrics: Callable[[str], Iterable[Metric]]
read_openmetrics = cast("Any", parser).text_string_to_metric_families
