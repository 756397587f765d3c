"""Takes readings of what is stuck now, in steps, so that no client waits for them."""

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import replace
from itertools import groupby, islice
from operator import attrgetter
from typing import TypeVar

from holdfast.bayeux.sessions.life import SessionLife
from holdfast.bayeux.sessions.status import hold_of, since_ms, wall_ms
from holdfast.delivery.basics.node import NS_PER_MS
from holdfast.store.letters.filter import LetterFilter
from holdfast.store.letters.search import LetterSearch
from holdfast.store.links.connection import StoreUnavailable
from holdfast.web.admin import now_views as views
from holdfast.web.admin.alerts import Alerts, RaisedAlert
from holdfast.web.admin.changes import RunningServer
from holdfast.web.admin.figures import LiveFigures
from holdfast.web.admin.now_sentence import sentence
from holdfast.web.admin.session_views import Hold, held_channel
from holdfast.web.admin.shards import ShardViews, state_of
from holdfast.web.admin.system_views import Figures
from holdfast.web.admin.tally import (
    OUT_OF_REACH,
    ChannelTally,
    Largest,
    QueueTally,
    Tally,
    WorkerTally,
    WorkTally,
)
from holdfast.web.admin.tallying import MOST, Tallying
from holdfast.web.admin.views import view_of

Item = TypeVar("Item")
View = TypeVar("View")

# A reading is good for this long, ...
_FRESH_S = 0.9
# ... and readings take at most this share of the processor, even with millions of entries.
_SHARE = 0.1
_HOUR_MS = 3_600_000
# The letters that are looked at for the codes that are counted.
_SAMPLES = 400


class LiveNow:
    """Takes readings, which all callers share."""

    def __init__(
        self,
        server: RunningServer,
        figures: LiveFigures,
        tallying: Tallying,
        letters: LetterSearch,
        alerts: Alerts,
        shards: ShardViews,
    ) -> None:
        self._server = server
        self._tallying = tallying
        self._figures = figures
        self._letters = letters
        self._alerts = alerts
        self._shards = shards
        self._latest: views.Now | None = None
        self._good_until = 0.0
        # A caller that arrives while a reading is taken waits for that reading.
        self._taking = asyncio.Lock()

    async def read(self, limit: int = MOST) -> views.Now:
        """Return what is stuck now, with the first items of each list."""
        async with self._taking:
            if self._latest is None or self._server.clock() >= self._good_until:
                self._latest = await self._take()
            return _first_of(self._latest, limit)

    async def _take(self) -> views.Now:
        figures = await self._figures.read()
        letters = await self._codes(figures)
        tally, spent_s = await self._tallying.count()
        reading = _Reading(self._server.life, self._server.clock(), tally)
        found = reading.view(figures, letters, self._alerts.raised(), self._shards)
        self._good_until = self._server.clock() + max(_FRESH_S, spent_s / _SHARE)
        return found

    async def _codes(self, figures: Figures) -> views.FirstItems[views.CodeNow] | None:
        """Count the letters of the last hour by code: by all codes of the latest ones."""
        if figures.letters is None:
            # The store has just not answered.
            return None
        since = figures.time - _HOUR_MS
        try:
            latest = await self._letters.query(LetterFilter(since=since), None, _SAMPLES)
            codes = {letter.code for letter in latest.letters}
            counts = {
                code: await self._letters.count(LetterFilter(code=code, since=since))
                for code in sorted(codes)
            }
            total = await self._letters.count(LetterFilter(since=since))
        except StoreUnavailable:
            return None
        largest = sorted(counts, key=lambda code: -counts[code])
        found = [views.CodeNow(code, counts[code]) for code in largest]
        return _codes(found, total - sum(counts.values()))


class _Reading:
    """Makes the views of one tally."""

    def __init__(self, life: SessionLife, now: float, tally: Tally) -> None:
        self._state = life.state
        self._now = now
        self._node = life.state.node
        self._tally = tally

    def view(
        self,
        figures: Figures,
        letters: views.FirstItems[views.CodeNow] | None,
        alerts: list[RaisedAlert],
        seen: ShardViews,
    ) -> views.Now:
        shards = seen.read()
        tally, guard = self._tally, self._state.guard
        channels, work = tally.channels(), tally.work()
        longest = sorted(guard.held, key=lambda channel: guard.held[channel].since)
        held = [held_channel(guard, self._node, each, self._now) for each in longest[:MOST]]
        found = views.Now(
            sentence="",
            time=self._node.now_ms(),
            store=state_of(self._state.store),
            alerts=views.FirstItems(alerts, 0),
            shards=views.FirstItems(shards if len(shards) > 1 else [], 0),
            backend=views.FirstItems(seen.backend(), 0),
            waiting=tally.waiting,
            in_flight=tally.in_flight,
            oldest=self._oldest(tally.oldest.first()),
            oldest_receivers=self._receivers(tally.oldest),
            receivers=self._receivers(tally.fullest),
            channels=_first(channels, map(self._channel, channels.first())),
            work_queues=_first(work, map(self._work, work.first())),
            workers=self._workers(work.first()),
            held_back=self._receivers(tally.held_back),
            held_channels=views.FirstItems(held, len(longest) - len(held)),
            unreachable=self._receivers(tally.out_of_reach),
            letters=letters,
            figures=figures,
        )
        return replace(found, sentence=sentence(found))

    def _oldest(self, first: list[QueueTally]) -> views.OldestEntry | None:
        if not first or first[0].oldest is None:
            return None
        found, message = first[0], first[0].oldest
        return views.OldestEntry(
            id=self._node.id_of(message.id),
            channel=message.channel,
            receiver=found.receiver.key,
            published=message.id // NS_PER_MS,
            state="in_flight" if found.is_oldest_in_flight else "waiting",
        )

    def _receivers(self, largest: Largest[QueueTally]) -> views.FirstItems[views.ReceiverNow]:
        return _first(largest, map(self._receiver, largest.first()))

    def _receiver(self, found: QueueTally) -> views.ReceiverNow:
        receiver, oldest = found.receiver, found.oldest
        state, hold = receiver.connection_state, hold_of(receiver)
        return view_of(
            views.ReceiverNow,
            found,
            receiver=receiver.key,
            state=None if receiver.has_shared_queue else state,
            since=since_ms(self._node, receiver, state, self._now)
            if state in OUT_OF_REACH
            else None,
            hold=None if hold is None else view_of(Hold, hold),
            oldest=None if oldest is None else oldest.id // NS_PER_MS,
            oldest_id=None if oldest is None else self._node.id_of(oldest.id),
        )

    def _channel(self, found: ChannelTally) -> views.ChannelNow:
        return view_of(views.ChannelNow, found, held=found.channel in self._state.guard.held)

    def _work(self, found: WorkTally) -> views.WorkNow:
        channel = self._state.channels.get(found.channel)
        receivers = () if channel is None else self._state.routes.receivers(channel)
        total = self._worker(found.channel, found.total)
        return view_of(views.WorkNow, found, total, receivers=len(receivers))

    def _workers(self, queues: list[WorkTally]) -> views.FirstItems[views.WorkerNow]:
        found = [
            self._worker(queue.channel, each) for queue in queues for each in queue.workers.first()
        ]
        return views.FirstItems(found, sum(queue.workers.count for queue in queues) - len(found))

    def _worker(self, channel: str, found: WorkerTally) -> views.WorkerNow:
        return view_of(
            views.WorkerNow,
            found,
            channel=channel,
            oldest=None if found.oldest is None else found.oldest // NS_PER_MS,
            since=None if found.since is None else wall_ms(self._node, found.since, self._now),
        )


def _first(largest: Largest[Item], items: Iterable[View]) -> views.FirstItems[View]:
    found = [*items]
    return views.FirstItems(found, largest.count - len(found))


def _codes(found: list[views.CodeNow], others: int) -> views.FirstItems[views.CodeNow]:
    """Return the letters by code; a last row counts those with other codes."""
    return views.FirstItems([*found, *([views.CodeNow(None, others)] if others > 0 else ())], 0)


def _first_of(now: views.Now, limit: int) -> views.Now:
    """Return the reading with shorter lists."""

    def first(found: views.FirstItems[Item]) -> views.FirstItems[Item]:
        return views.FirstItems(found.items[:limit], found.more + len(found.items[limit:]))

    queues = first(now.work_queues)
    return replace(
        now,
        oldest_receivers=first(now.oldest_receivers),
        receivers=first(now.receivers),
        channels=first(now.channels),
        work_queues=queues,
        workers=_workers_of(now.workers, {each.channel for each in queues.items}, limit),
        held_back=first(now.held_back),
        held_channels=first(now.held_channels),
        unreachable=first(now.unreachable),
        letters=None if now.letters is None else _first_codes(now.letters.items, limit),
    )


def _workers_of(
    workers: views.FirstItems[views.WorkerNow], queues: Collection[str], limit: int
) -> views.FirstItems[views.WorkerNow]:
    """Return the first workers of each of these queues."""
    by_queue = groupby(workers.items, attrgetter("channel"))
    found = [each for queue, its in by_queue if queue in queues for each in islice(its, limit)]
    return views.FirstItems(found, workers.more + len(workers.items) - len(found))


def _first_codes(codes: list[views.CodeNow], limit: int) -> views.FirstItems[views.CodeNow]:
    return _codes(codes[:limit], sum(each.letters for each in codes[limit:]))
