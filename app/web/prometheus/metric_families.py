"""The families of metrics for Prometheus. Every label has a fixed set of values."""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from holdfast.bayeux.server import Bayeux
from holdfast.bayeux.state.webhook_figures import CallOutcome
from holdfast.bayeux.wire.login import LoginMethod
from holdfast.delivery.basics.error_codes import CODES
from holdfast.delivery.basics.session_states import SessionInput
from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.requests.request import ReplyFault, RequestEnd
from holdfast.delivery.topics.states import TopicState
from holdfast.web.admin.alert_limits import Alert
from holdfast.web.admin.alerts import Alerts
from holdfast.web.admin.census import Census
from holdfast.web.admin.figure_readings import OwnFigures
from holdfast.web.front.connection_limit import ConnectionLimit
from holdfast.web.prometheus.backend_families import backend_families
from holdfast.web.prometheus.door_figures import DoorFigures
from holdfast.web.prometheus.exposition import written
from holdfast.web.prometheus.forms import Form
from holdfast.web.prometheus.history_families import history_families
from holdfast.web.prometheus.process_families import process_families
from holdfast.web.prometheus.shard_families import door_families_of, families_of
from holdfast.web.prometheus.time_families import time_families
from holdfast.web.scheduling.speaking import SpeakingRight

_MS_PER_S = 1000
# What a worker has passed on to others.
Forwarded = Callable[[], DoorFigures]
FAMILIES = sorted({code.family for code in CODES.values()})


class BayeuxCollector(Collector):
    """Reads the core's counters on request, at no cost to hot paths."""

    def __init__(
        self,
        bayeux: Bayeux,
        limits: Mapping[str, ConnectionLimit],
        alerts: Alerts,
        right: SpeakingRight,
        forwarded: Forwarded | None = None,
        own: OwnFigures | None = None,
    ) -> None:
        self._bayeux = bayeux
        self._limits = limits
        self._alerts = alerts
        self._right = right
        self._forwarded = forwarded
        self._own = own or OwnFigures()

    def collect(self) -> Iterator[Metric]:
        yield from self._publishes()
        yield from self._requests()
        yield from self._entries()
        yield from self._failures()
        yield from self._letters()
        yield from self._obstacles()
        yield from self._budgets()
        yield from self._journal()
        yield from self._silences()
        yield from self._sessions()
        yield from self._connections()
        yield from self._alert_states()
        yield from self._webhooks()
        state = self._bayeux.state
        if state.backend is not None:
            yield from backend_families(state.backend)
        yield from time_families(state.ledger.times, self._own, state.node.id_of)
        yield from process_families(self._own.traffic(), state.counters.errors)
        others = state.hub.others
        if others is not None:
            yield from families_of(others.figures())
        if self._forwarded is not None:
            yield from door_families_of(self._forwarded())

    def _webhooks(self) -> Iterator[Metric]:
        calls = CounterMetricFamily(
            "holdfast_webhook_calls", "Calls of webhooks by outcome.", labels=["webhook", "outcome"]
        )
        for name, figures in self._bayeux.state.webhooks.items():
            for outcome in CallOutcome:
                calls.add_metric([name, outcome.value], figures.calls[outcome])
        yield calls

    def _publishes(self) -> Iterator[Metric]:
        counters = self._bayeux.state.counters
        yield CounterMetricFamily(
            "holdfast_messages_published", "Messages accepted.", value=counters.published
        )
        yield CounterMetricFamily(
            "holdfast_publishes_repeated",
            "Publishes sent again, recognised by their key.",
            value=counters.repeated,
        )
        yield CounterMetricFamily(
            "holdfast_publish_keys_dropped",
            "Publish keys forgotten early because the limit was reached.",
            value=self._bayeux.state.store.keys_dropped,
        )
        yield CounterMetricFamily(
            "holdfast_store_went_back",
            "How often the store had lost changes, and the server wrote what it knows again.",
            value=self._bayeux.state.store.losses,
        )

    def _requests(self) -> Iterator[Metric]:
        requests = self._bayeux.state.requests
        yield GaugeMetricFamily(
            "holdfast_requests_outstanding",
            "Requests that wait for replies; max_total_outstanding limits them.",
            value=requests.outstanding,
        )
        yield CounterMetricFamily("holdfast_requests", "Requests.", value=requests.asked)
        yield CounterMetricFamily(
            "holdfast_requests_restored",
            "Requests of an earlier process that continued.",
            value=requests.restored,
        )
        ended = CounterMetricFamily(
            "holdfast_requests_ended", "Ended requests by outcome.", labels=["outcome"]
        )
        for outcome in RequestEnd:
            ended.add_metric([outcome.value], requests.ended[outcome])
        yield ended
        yield CounterMetricFamily("holdfast_replies", "Accepted replies.", value=requests.replies)
        refused = CounterMetricFamily(
            "holdfast_replies_refused", "Refused replies by reason.", labels=["reason"]
        )
        for reason in ReplyFault:
            refused.add_metric([reason.value], requests.refused[reason])
        yield refused

    def _entries(self) -> Iterator[Metric]:
        counters = self._bayeux.state.counters
        yield CounterMetricFamily(
            "holdfast_entries_accepted",
            "Entries added to queues: one for each receiver of a message.",
            value=counters.accepted,
        )
        yield CounterMetricFamily(
            "holdfast_entries_restored",
            "Entries restored from the store at start.",
            value=counters.restored,
        )
        yield GaugeMetricFamily(
            "holdfast_entries_borrowed",
            "Work of other workers that came here, less work of this one that was done there.",
            value=counters.borrowed,
        )
        settled = CounterMetricFamily(
            "holdfast_entries_settled",
            "Settled entries by outcome.",
            labels=["outcome"],
        )
        for outcome, count in counters.books().items():
            settled.add_metric([outcome], count)
        yield settled
        discarded = CounterMetricFamily(
            "holdfast_entries_discarded", "Discarded entries by reason.", labels=["reason"]
        )
        for reason in Reason:
            discarded.add_metric([reason.value], counters.discarded[reason])
        yield discarded
        yield CounterMetricFamily(
            "holdfast_entries_redelivered",
            "Redeliveries: entries handed over again.",
            value=counters.redelivered,
        )

    def _failures(self) -> Iterator[Metric]:
        counters = self._bayeux.state.counters
        yield CounterMetricFamily(
            "holdfast_acks_out_of_range",
            "Acks of batches that were never sent.",
            value=counters.acks_out_of_range,
        )
        yield CounterMetricFamily(
            "holdfast_verdicts_unknown",
            "Verdicts on entries that were not in flight.",
            value=counters.verdicts_unknown,
        )
        failed = CounterMetricFamily(
            "holdfast_deliveries_failed",
            "Failed deliveries by family of error codes.",
            labels=["family"],
        )
        for family in FAMILIES:
            failed.add_metric([family], counters.refused[family])
        yield failed

    def _letters(self) -> Iterator[Metric]:
        quota = self._bayeux.state.store.letter_quota
        yield GaugeMetricFamily(
            "holdfast_dead_letters", "Dead letters in the store.", value=quota.all.count
        )
        yield GaugeMetricFamily(
            "holdfast_dead_letters_bytes",
            "Approximate size of the dead letters in the store.",
            value=quota.all.bytes,
        )
        removed = CounterMetricFamily(
            "holdfast_dead_letters_removed",
            "Dead letters removed because of age or quota.",
            labels=["reason"],
        )
        for reason, count in quota.removed.items():
            removed.add_metric([reason.value], count)
        yield removed

    def _budgets(self) -> Iterator[Metric]:
        overspent = CounterMetricFamily(
            "holdfast_budgets_exceeded",
            "Requests and messages refused because an address or subject exceeded a limit.",
            labels=["kind"],
        )
        for budget in self._bayeux.state.budgets.all:
            overspent.add_metric([budget.kind], budget.overspent)
        for kind, count in self._bayeux.state.sessions.usages.exceeded.items():
            overspent.add_metric([kind], count)
        yield overspent
        logins = CounterMetricFamily(
            "holdfast_logins", "Logins by method, and failed ones.", labels=["method"]
        )
        counted = self._bayeux.state.counters.logins
        for method in (*(each.value for each in LoginMethod), "failed"):
            logins.add_metric([method], counted[method])
        yield logins

    def _obstacles(self) -> Iterator[Metric]:
        """Yield metrics of everything that blocks delivery."""
        yield GaugeMetricFamily(
            "holdfast_channels_held_back",
            "Held channels.",
            value=len(self._bayeux.state.guard.held),
        )
        yield GaugeMetricFamily(
            "holdfast_store_available",
            "1 if the store accepts durable messages.",
            value=self._bayeux.state.store.takes_messages,
        )
        yield CounterMetricFamily(
            "holdfast_work_failures",
            "Pieces of work that failed after their request was handled; the log has the first.",
            value=self._bayeux.state.backlog.failures,
        )

    def _journal(self) -> Iterator[Metric]:
        journal = self._bayeux.state.journal
        if journal.is_writing:
            yield CounterMetricFamily(
                "holdfast_journal_events_dropped",
                "Journal events lost because the store was unavailable or refused them.",
                value=journal.dropped,
            )
            yield CounterMetricFamily(
                "holdfast_journal_frames_unread",
                "Journal frames trimmed by age or size before every reader had them.",
                value=journal.unread,
            )

    def _silences(self) -> Iterator[Metric]:
        yield CounterMetricFamily(
            "holdfast_silences",
            "How often replies waited because the store did not confirm the lease.",
            value=self._right.silences,
        )
        yield CounterMetricFamily(
            "holdfast_silent_seconds",
            "How long replies waited for the store to confirm the lease.",
            value=self._right.silent_s,
        )

    def _sessions(self) -> Iterator[Metric]:
        yield from self._living()
        sessions = self._bayeux.state.sessions
        yield CounterMetricFamily(
            "holdfast_sessions_created", "Sessions created.", value=sessions.created
        )
        ended = CounterMetricFamily(
            "holdfast_sessions_ended", "Ended sessions by reason.", labels=["reason"]
        )
        for reason in (SessionInput.DISCONNECT, SessionInput.EXPIRE, SessionInput.FAIL):
            ended.add_metric([reason.value], sessions.ended[reason.value])
        yield ended
        yield CounterMetricFamily(
            "holdfast_sessions_evicted",
            "Unconnected sessions ended to free session slots.",
            value=self._bayeux.slots.evicted,
        )
        refused = CounterMetricFamily(
            "holdfast_handshakes_refused",
            "Handshakes refused because of handshake_rate, or because the event loop lags.",
            labels=["reason"],
        )
        for why, count in self._bayeux.state.admission.refused.items():
            refused.add_metric([why.value], count)
        yield refused
        yield GaugeMetricFamily(
            "holdfast_sessions_unconnected",
            "Sessions whose client has not connected yet or is absent: away or lost.",
            value=len(self._bayeux.life.unconnected),
        )
        yield from self._subscriptions()
        yield from history_families(self._bayeux)

    def _subscriptions(self) -> Iterator[Metric]:
        state = self._bayeux.state
        yield GaugeMetricFamily(
            "holdfast_subscribed_channels",
            "Channels and patterns that have subscribers.",
            value=len(state.routes),
        )
        yield GaugeMetricFamily(
            "holdfast_subscriptions",
            "Subscriptions of all sessions; max_total_subscriptions limits them.",
            value=state.routes.count,
        )
        yield CounterMetricFamily(
            "holdfast_subscriptions_refused",
            "Subscribe requests refused because max_total_subscriptions was reached.",
            value=state.counters.subscriptions_refused,
        )
        topics = GaugeMetricFamily(
            "holdfast_topics", "Topics by state; max_topics limits them.", labels=["state"]
        )
        for each in TopicState:
            if each is not TopicState.DEAD:
                topics.add_metric([each.value], state.topics.states[each])
        yield topics

    def _connections(self) -> Iterator[Metric]:
        present = GaugeMetricFamily(
            "holdfast_connections", "Open client connections.", labels=["listener"]
        )
        turned_away = CounterMetricFamily(
            "holdfast_connections_turned_away",
            "Connections closed at the connection limit, which follows from that of open files.",
            labels=["listener"],
        )
        for listener, limit in self._limits.items():
            present.add_metric([listener], len(limit))
            turned_away.add_metric([listener], limit.turned_away)
        yield present
        yield turned_away

    def _living(self) -> Iterator[Metric]:
        parts = self._bayeux.state
        census = Census.of(parts.sessions, parts.waiting_places, parts.guard, parts.counters)
        yield GaugeMetricFamily(
            "holdfast_entries_waiting",
            "Entries in queues and not in flight: new or returned.",
            value=census.waiting,
        )
        yield GaugeMetricFamily(
            "holdfast_entries_waiting_for_subjects",
            "Entries that wait for subjects, included in holdfast_entries_waiting.",
            value=census.waiting_for_subjects,
        )
        yield GaugeMetricFamily(
            "holdfast_entries_waiting_in_work_queues",
            "Entries that wait in work queues, included in holdfast_entries_waiting.",
            value=census.waiting_in_work_queues,
        )
        yield GaugeMetricFamily(
            "holdfast_entries_in_flight", "Entries in flight.", value=census.in_flight
        )
        yield GaugeMetricFamily(
            "holdfast_connects_held", "Held connects.", value=census.connects_held
        )
        yield GaugeMetricFamily(
            "holdfast_entries_unaccounted",
            "Entries accepted, restored and borrowed, less those settled, waiting and in flight:"
            " must be 0.",
            value=census.unaccounted,
        )
        yield GaugeMetricFamily(
            "holdfast_sessions_durable", "Durable sessions.", value=census.durable
        )
        yield GaugeMetricFamily(
            "holdfast_sessions_held_back",
            "Sessions whose queue is held back.",
            value=census.held_back,
        )
        yield GaugeMetricFamily(
            "holdfast_sessions_polling",
            "Sessions whose dispatcher is POLLING: they have lost contact, or wait for a retry.",
            value=census.polling,
        )
        living = GaugeMetricFamily("holdfast_sessions", "Sessions by state.", labels=["state"])
        for state, count in census.states.items():
            living.add_metric([state.value], count)
        living.add_metric(["lost"], census.lost)
        yield living

    def _alert_states(self) -> Iterator[Metric]:
        raised = GaugeMetricFamily(
            "holdfast_alert_raised", "Whether the alert is raised: 1 or 0.", labels=["alert"]
        )
        times = CounterMetricFamily("holdfast_alerts", "Alerts raised.", labels=["alert"])
        for alert in Alert:
            raised.add_metric([alert.value], self._alerts.is_raised(alert))
            times.add_metric([alert.value], self._alerts.times[alert])
        yield raised
        yield times
        yield GaugeMetricFamily(
            "holdfast_ingest_behind_seconds",
            "Age of the oldest events that some tables of the pipeline lack, looked up once a "
            "minute.",
            value=self._alerts.values[Alert.INGEST] / _MS_PER_S,
        )


class MetricFamilies:
    """All metrics of a server and its process, as texts."""

    def __init__(
        self,
        bayeux: Bayeux,
        limits: Mapping[str, ConnectionLimit],
        alerts: Alerts,
        right: SpeakingRight,
        forwarded: Forwarded | None = None,
        own: OwnFigures | None = None,
    ) -> None:
        self.server = CollectorRegistry()
        self.server.register(BayeuxCollector(bayeux, limits, alerts, right, forwarded, own))
        self._process = CollectorRegistry()
        ProcessCollector(registry=self._process)
        PlatformCollector(registry=self._process)
        GCCollector(registry=self._process)

    def of_server(self, form: Form = Form.TEXT) -> bytes:
        return written(self.server, form)

    def of_process(self, form: Form) -> bytes:
        """Read /proc, which takes long with many open sockets."""
        return written(self._process, form)
