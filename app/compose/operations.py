"""Makes what answers the requests of the administration, when the first one comes."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from holdfast.compose.storage import Storage
from holdfast.store.framing.journal_frames import JournalFrames
from holdfast.store.letters.administration import Letters
from holdfast.store.pipeline_results import PipelineResults
from holdfast.store.replays.control import Replays
from holdfast.web.admin.alerts import Alerts
from holdfast.web.admin.changes import RunningServer
from holdfast.web.admin.figure_keeper import FigureKeeper
from holdfast.web.admin.figures import LiveFigures
from holdfast.web.admin.tallying import Tallying

if TYPE_CHECKING:
    from holdfast.compose.host_overview import HostOverview
    from holdfast.web.admin.handlers import Handler
    from holdfast.web.admin.shards import ShardViews

# What is imported then, in steps that keep no client waiting. The last one needs all others.
STEPS = (
    "letter_views",
    "message_views",
    "session_views",
    "system_views",
    "now_views",
    "shards",
    "now_tables",
    "now",
    "route",
    "sessions",
    "shared_queues",
    "delayed",
    "readers",
    "webhooks",
    "topics",
    "letters",
    "messages",
    "past",
    "upgrade",
    "host_views",
    "all_hosts",
    "system",
    "handlers",
)


@dataclass(frozen=True, slots=True)
class Operated:
    """The parts of a server that its operators look at and change."""

    server: RunningServer
    storage: Storage
    letters: Letters
    replays: Replays
    figures: LiveFigures
    tallying: Tallying
    alerts: Alerts
    shards: "Callable[[], ShardViews]"
    results: PipelineResults
    frames: JournalFrames
    keeper: FigureKeeper
    # The number of this shard.
    number: int
    # None if there is no list of hosts.
    hosts: "HostOverview | None"
    # Waits until this process may speak to clients.
    speaking: Callable[[], Awaitable[None]]

    async def handlers(self) -> "Sequence[Handler]":
        """Return what answers each route."""
        for each in STEPS:
            import_module(f"holdfast.web.admin.{each}")
            await asyncio.sleep(0)
        from holdfast.web.admin.handlers import handlers

        return handlers(self._resources(), self.speaking)

    def _resources(self) -> Sequence[object]:
        from holdfast.web.admin.all_hosts import HostResource
        from holdfast.web.admin.letters import LetterResource
        from holdfast.web.admin.messages import MessageResource
        from holdfast.web.admin.now import LiveNow
        from holdfast.web.admin.past import PastResource
        from holdfast.web.admin.readers import ReaderResource
        from holdfast.web.admin.resources import LISTS
        from holdfast.web.admin.sessions import SessionResource
        from holdfast.web.admin.shared_queues import SharedQueueResource
        from holdfast.web.admin.system import SystemResource
        from holdfast.web.admin.topics import TopicResource
        from holdfast.web.admin.upgrade import UpgradeResource
        from holdfast.web.admin.webhooks import WebhookResource

        server, search, figures = self.server, self.letters.search, self.figures
        shards = self.shards()
        now = LiveNow(server, figures, self.tallying, search, self.alerts, shards)
        return (
            SessionResource(server, search),
            SharedQueueResource(server),
            ReaderResource(server),
            WebhookResource(server),
            *[each(server) for each in LISTS],
            TopicResource(server),
            LetterResource(server, self.letters, self.replays),
            MessageResource(server, search, self.frames),
            PastResource(self.keeper, self.number),
            UpgradeResource(server, self.storage.store.layout, self.storage.finish_upgrade),
            HostResource(server, self.hosts),
            SystemResource(
                server,
                figures=figures,
                now=now,
                shards=shards,
                letters=search,
                results=self.results,
            ),
        )
