"""The metrics as Prometheus reads them."""

import asyncio
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from holdfast.bayeux.server import Bayeux
from holdfast.web.admin.alerts import Alerts
from holdfast.web.admin.figure_readings import OwnFigures
from holdfast.web.front.connection_limit import ConnectionLimit
from holdfast.web.prometheus.forms import Form, joined
from holdfast.web.scheduling.speaking import SpeakingRight

if TYPE_CHECKING:
    from holdfast.web.prometheus.metric_families import Forwarded, MetricFamilies

# After reading the metrics, the server pauses for this many times as long: with many sessions,
# reading takes a tenth of a second, and any client may ask.
_PAUSES = 10


class MetricsPage(Protocol):
    """What Prometheus reads."""

    async def text(self, form: Form) -> bytes:
        """Return the metrics in this form, none of them older than this call."""
        ...


class Metrics:
    """All metrics of this server and its process."""

    def __init__(
        self,
        bayeux: Bayeux,
        limits: Mapping[str, ConnectionLimit],
        alerts: Alerts,
        right: SpeakingRight,
        forwarded: "Forwarded | None" = None,
        own: OwnFigures | None = None,
    ) -> None:
        self._bayeux = bayeux
        self._limits = limits
        self._alerts = alerts
        self._right = right
        self._forwarded = forwarded
        self._own = own
        self._families: MetricFamilies | None = None
        self._turn = asyncio.Lock()
        # The text in each form and when it was read, and when any may be read next.
        self._texts: dict[Form, tuple[bytes, float]] = {}
        self._free_at = -math.inf

    async def text(self, form: Form) -> bytes:
        """Return the metrics in this form, none of them older than this call.

        Concurrent callers share one reading.
        """
        now = asyncio.get_running_loop().time
        asked_at = now()
        async with self._turn:
            if self._families is None:
                self._families = await asyncio.to_thread(self._load)
            text, read_at = self._texts.get(form, (b"", -math.inf))
            if read_at < asked_at:
                await asyncio.sleep(self._free_at - now())
                process = await asyncio.to_thread(self._families.of_process, form)
                read_at = now()
                text = joined([self._families.of_server(form), process], form)
                self._texts[form] = text, read_at
                self._free_at = now() + (now() - read_at) * _PAUSES
            return text

    def _load(self) -> "MetricFamilies":
        # Servers without monitoring need not load Prometheus' client.
        from holdfast.web.prometheus.metric_families import MetricFamilies

        return MetricFamilies(
            *(self._bayeux, self._limits, self._alerts, self._right, self._forwarded, self._own)
        )
