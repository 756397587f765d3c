"""Measures what alerts depend on, and alerts operators on `/sys/alert` and in the log."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence

from holdfast.bayeux.sessions.channel_holds import ALERT
from holdfast.delivery.basics.notices import ALERT_CLEARED, ALERT_RAISED
from holdfast.store.framing.journal_frames import JournalFrames
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.pipeline_results import PipelineResults
from holdfast.web.admin.alert_limits import Alert, AlertLimits
from holdfast.web.admin.alerts import Alerts, Measured, RaisedAlert
from holdfast.web.admin.changes import RunningServer
from holdfast.web.admin.count_window import CountWindow
from holdfast.web.admin.measurements import (
    of_audit,
    of_files,
    of_ingest,
    of_letters,
    of_oldest,
    of_refused,
    of_replicas,
    of_shards,
)
from holdfast.web.admin.tallying import Tallying

log = logging.getLogger(__name__)

EVERY_S = 10.0
# Counting takes at most this share of the processor, even with millions of entries.
_SHARE = 0.01
# Pipeline results change rarely.
_PIPELINE_EVERY_S = 60.0

_Found = Iterator[tuple[Alert, Measured]]


class AlertWatch:
    """Looks every ten seconds, and at the pipeline's results once a minute.

    Args:
        limits: Returns the limits in force.
        away_s: Returns for how many seconds other shards have been away, by number.
        replicas: Returns why replicas do not confirm messages; nothing if they do.
        files: Returns why files that were changed cannot be used.
    """

    def __init__(
        self,
        server: RunningServer,
        tallying: Tallying,
        alerts: Alerts,
        limits: Callable[[], AlertLimits],
        *,
        results: PipelineResults,
        frames: JournalFrames,
        away_s: Callable[[], Mapping[int, float]] = dict,
        replicas: Callable[[], str] = str,
        files: Callable[[], Sequence[str]] = list,
    ) -> None:
        self._server = server
        self._state = server.life.state
        self._tallying = tallying
        self._alerts = alerts
        self._limits = limits
        self._results = results
        self._frames = frames
        self._away_s = away_s
        self._replicas = replicas
        self._files = files
        self._counts = CountWindow(self._state.counters, server.clock())
        self._pipeline_due = 0.0

    async def run(self) -> None:
        spent_s = 0.0
        while True:
            await asyncio.sleep(max(EVERY_S, spent_s / _SHARE))
            try:
                spent_s = await self.look()
            except Exception:
                log.exception("the alerts could not be checked")

    def replicas_changed(self) -> None:
        """Judge at once whether replicas confirm messages."""
        self._judge(iter([(Alert.REPLICAS, of_replicas(self._replicas()))]), self._limits())

    async def look(self) -> float:
        """Measure everything that is due. Returns the processor time of counting."""
        limits, spent_s = self._limits(), 0.0
        self._judge(self._of_counters(limits), limits)
        if self._needs_tally(limits):
            tally, spent_s = await self._tallying.count()
            measured = of_oldest(tally, self._state.node)
            self._judge(iter(measured.items()), limits)
        if self._server.keeps_journal and self._server.clock() >= self._pipeline_due:
            self._pipeline_due = self._server.clock() + _PIPELINE_EVERY_S
            try:
                found = await self._of_pipeline()
            except StoreUnavailable:
                # The value is unknown, so a raised alert stays raised.
                return spent_s
            self._judge(iter(found), limits)
        return spent_s

    def _needs_tally(self, limits: AlertLimits) -> bool:
        queues = (Alert.OLDEST, Alert.ABSENT)
        return any(limits.of(each) or self._alerts.is_raised(each) for each in queues)

    def _of_counters(self, limits: AlertLimits) -> _Found:
        self._counts.note(self._server.clock())
        yield Alert.LETTERS, of_letters(self._counts)
        yield Alert.REFUSED, of_refused(self._counts, limits.refused_at_least)
        yield Alert.SHARDS, of_shards(self._away_s())
        yield Alert.REPLICAS, of_replicas(self._replicas())
        yield Alert.FILES, of_files(self._files())

    async def _of_pipeline(self) -> list[tuple[Alert, Measured]]:
        node = self._state.node
        unread = await self._frames.unread()
        audit = await self._results.get("audit")
        return [
            (Alert.INGEST, of_ingest(unread, node.now_ms())),
            (Alert.AUDIT, of_audit(audit, node.now_ms())),
        ]

    def _judge(self, found: _Found, limits: AlertLimits) -> None:
        for alert, measured in found:
            now, now_ms = self._server.clock(), self._state.node.now_ms()
            changed = self._alerts.judge(alert, measured, limits, now, now_ms)
            if changed is not None:
                self._report(changed, is_raised=self._alerts.is_raised(alert))

    def _report(self, alert: RaisedAlert, *, is_raised: bool) -> None:
        data = {
            "kind": "alert raised" if is_raised else "alert cleared",
            "alert": alert.alert.value,
            "since": alert.since,
            "reason": alert.reason,
        }
        text = alert.reason
        if is_raised:
            data["next"] = alert.next
            text = f"{text}; {alert.next}"
        self._state.notices.report(
            ALERT_RAISED if is_raised else ALERT_CLEARED, alert.alert.value, text
        )
        self._state.system_events.publish({"channel": ALERT, "data": data})
