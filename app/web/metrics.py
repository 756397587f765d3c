"""What the server counts, for Prometheus. Every label has a fixed set of values."""

import asyncio
from collections.abc import Iterator, Mapping

from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from app.bayeux.life import Input
from app.bayeux.server import Bayeux
from app.delivery.counters import Reason
from app.delivery.error_codes import CODES
from app.web.census import Census
from app.web.room import Room

FAMILIES = sorted({code.family for code in CODES.values()})


class BayeuxCollector(Collector):
    """Reads the core's own counters when asked: counting costs the hot path nothing more."""

    def __init__(self, bayeux: Bayeux, rooms: Mapping[str, Room]) -> None:
        self._bayeux = bayeux
        self._rooms = rooms

    def collect(self) -> Iterator[Metric]:
        yield from self._publishes()
        yield from self._entries()
        yield from self._failures()
        yield from self._letters()
        yield from self._obstacles()
        yield from self._budgets()
        yield from self._journal()
        yield from self._sessions()
        yield from self._connections()

    def _publishes(self) -> Iterator[Metric]:
        counters = self._bayeux.hub.counters
        yield CounterMetricFamily(
            "holdfast_messages_published", "Messages accepted.", value=counters.published
        )
        yield CounterMetricFamily(
            "holdfast_publishes_repeated",
            "Publishes that had come before, by their key.",
            value=counters.repeated,
        )
        yield CounterMetricFamily(
            "holdfast_publish_keys_dropped",
            "Keys of publishes that were forgotten before their time, for want of room.",
            value=self._bayeux.hub.keeper.keys_dropped,
        )

    def _entries(self) -> Iterator[Metric]:
        counters = self._bayeux.hub.counters
        yield CounterMetricFamily(
            "holdfast_entries_accepted", "Messages times receivers.", value=counters.accepted
        )
        yield CounterMetricFamily(
            "holdfast_entries_restored",
            "Entries that were in the store when this process began.",
            value=counters.restored,
        )
        settled = CounterMetricFamily(
            "holdfast_entries_settled",
            "Entries that left their queue, and how.",
            labels=["outcome"],
        )
        settled.add_metric(["acked"], counters.acked)
        settled.add_metric(["dead"], counters.dead)
        settled.add_metric(["expired"], counters.expired)
        settled.add_metric(["discarded"], counters.discarded.total())
        yield settled
        discarded = CounterMetricFamily(
            "holdfast_entries_discarded", "Entries that were discarded, and why.", labels=["reason"]
        )
        for reason in Reason:
            discarded.add_metric([reason.value], counters.discarded[reason])
        yield discarded
        yield CounterMetricFamily(
            "holdfast_entries_redelivered", "Entries sent again.", value=counters.redelivered
        )

    def _failures(self) -> Iterator[Metric]:
        counters = self._bayeux.hub.counters
        yield CounterMetricFamily(
            "holdfast_acks_out_of_range",
            "Acknowledgements of batches that were never sent.",
            value=counters.acks_out_of_range,
        )
        yield CounterMetricFamily(
            "holdfast_verdicts_unknown",
            "Verdicts on nothing that the receiver had in hands.",
            value=counters.verdicts_unknown,
        )
        failed = CounterMetricFamily(
            "holdfast_deliveries_failed",
            "Deliveries that failed, by the family of the code.",
            labels=["family"],
        )
        for family in FAMILIES:
            failed.add_metric([family], counters.refused[family])
        yield failed

    def _letters(self) -> Iterator[Metric]:
        room = self._bayeux.hub.keeper.letter_room
        yield GaugeMetricFamily(
            "holdfast_dead_letters", "Dead letters in the store.", value=room.all.count
        )
        yield GaugeMetricFamily(
            "holdfast_dead_letters_bytes", "What they take there, about.", value=room.all.bytes
        )
        removed = CounterMetricFamily(
            "holdfast_dead_letters_removed",
            "Dead letters that were removed for their age, or for want of room.",
            labels=["why"],
        )
        for why, count in room.removed.items():
            removed.add_metric([why.value], count)
        yield removed

    def _budgets(self) -> Iterator[Metric]:
        overspent = CounterMetricFamily(
            "holdfast_budgets_exceeded",
            "Refused requests and messages whose address or subject had spent its budget.",
            labels=["kind"],
        )
        for budget in self._bayeux.budgets.all:
            overspent.add_metric([budget.kind], budget.overspent)
        yield overspent

    def _obstacles(self) -> Iterator[Metric]:
        """What keeps everybody's messages."""
        yield GaugeMetricFamily(
            "holdfast_channels_held_back",
            "Channels whose delivery is held back.",
            value=len(self._bayeux.guard.held),
        )
        yield GaugeMetricFamily(
            "holdfast_store_available",
            "Whether durable work is possible.",
            value=self._bayeux.hub.keeper.takes_messages,
        )

    def _journal(self) -> Iterator[Metric]:
        witness = self._bayeux.witness
        if witness is not None:
            yield CounterMetricFamily(
                "holdfast_journal_events_dropped",
                "Events that are in no frame of the journal: the store was away, or refused them.",
                value=witness.dropped,
            )
            yield CounterMetricFamily(
                "holdfast_journal_frames_unread",
                "Frames of the journal that went for their age or its size before all had them.",
                value=witness.unread,
            )

    def _sessions(self) -> Iterator[Metric]:
        yield from self._living()
        sessions = self._bayeux.sessions
        yield CounterMetricFamily(
            "holdfast_sessions_created", "Sessions that began.", value=sessions.created
        )
        ended = CounterMetricFamily(
            "holdfast_sessions_ended", "Sessions that ended, and how.", labels=["how"]
        )
        for how in (Input.DISCONNECT, Input.EXPIRE, Input.FAIL):
            ended.add_metric([how.value], sessions.ended[how.value])
        yield ended
        yield CounterMetricFamily(
            "holdfast_sessions_evicted",
            "Unconnected sessions that ended because their places were needed.",
            value=self._bayeux.places.evicted,
        )
        yield GaugeMetricFamily(
            "holdfast_sessions_unconnected",
            "Sessions whose client has not connected, has left or is lost.",
            value=self._bayeux.places.unconnected,
        )
        yield GaugeMetricFamily(
            "holdfast_subscribed_channels",
            "Channels and patterns with subscribers.",
            value=len(self._bayeux.hub.routes),
        )

    def _connections(self) -> Iterator[Metric]:
        present = GaugeMetricFamily(
            "holdfast_connections", "Connections of clients.", labels=["listener"]
        )
        turned_away = CounterMetricFamily(
            "holdfast_connections_turned_away",
            "Connections that were closed as there were as many as the limit of open files allows.",
            labels=["listener"],
        )
        for listener, room in self._rooms.items():
            present.add_metric([listener], len(room))
            turned_away.add_metric([listener], room.turned_away)
        yield present
        yield turned_away

    def _living(self) -> Iterator[Metric]:
        census = Census.of(self._bayeux)
        yield GaugeMetricFamily(
            "holdfast_entries_waiting",
            "Waiting to be handed over, for the first time or again.",
            value=census.waiting,
        )
        yield GaugeMetricFamily(
            "holdfast_entries_handed", "Not yet acknowledged.", value=census.handed
        )
        yield GaugeMetricFamily(
            "holdfast_connects_held", "Connects held open.", value=census.connects_held
        )
        yield GaugeMetricFamily(
            "holdfast_entries_unaccounted",
            "Accepted and restored, less settled, waiting and handed over: must be 0.",
            value=census.unaccounted,
        )
        yield GaugeMetricFamily(
            "holdfast_sessions_durable", "Kept in the store.", value=census.durable
        )
        yield GaugeMetricFamily("holdfast_sessions_held_back", "Held back.", value=census.held_back)
        yield GaugeMetricFamily("holdfast_sessions_polling", "Awaited.", value=census.polling)
        living = GaugeMetricFamily("holdfast_sessions", "Living sessions.", labels=["state"])
        for state, count in census.states.items():
            living.add_metric([state.value], count)
        yield living


class Metrics:
    """All metrics of this server and its process."""

    def __init__(self, bayeux: Bayeux, rooms: Mapping[str, Room]) -> None:
        self._bayeux = CollectorRegistry()
        self._bayeux.register(BayeuxCollector(bayeux, rooms))
        self._process = CollectorRegistry()
        ProcessCollector(registry=self._process)
        PlatformCollector(registry=self._process)
        GCCollector(registry=self._process)

    async def text(self) -> bytes:
        """What a scraper reads."""
        # The process is known from files of the system: with many sockets open they are long.
        process = await asyncio.to_thread(generate_latest, self._process)
        return generate_latest(self._bayeux) + process
