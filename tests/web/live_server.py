"""A Bayeux server over a real store, and the administration of both; no HTTP between."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pytest

from holdfast.extensions.ack import Ack
from holdfast.extensions.delivery_wire import DeliveryWire
from holdfast.store.audit import Audit, AuditEntry
from holdfast.store.format.layouts import LAYOUT
from holdfast.store.format.opening_scripts import finish_upgrade
from holdfast.store.framing.journal_frames import JournalFrames
from holdfast.store.letters.administration import Letters
from holdfast.store.letters.filter import LetterFilter
from holdfast.store.past_figures import PastFigures
from holdfast.store.pipeline_results import PipelineResults
from holdfast.store.replays.control import Replays
from holdfast.web.admin.alert_limits import AlertLimits
from holdfast.web.admin.alert_watch import AlertWatch
from holdfast.web.admin.alerts import Alerts
from holdfast.web.admin.all_hosts import HostResource
from holdfast.web.admin.changes import RunningServer
from holdfast.web.admin.delayed import DelayedResource
from holdfast.web.admin.faults import RequestFailed
from holdfast.web.admin.figure_keeper import FigureKeeper
from holdfast.web.admin.figure_readings import FigureReadings, OwnFigures
from holdfast.web.admin.figures import LiveFigures
from holdfast.web.admin.letter_views import Letter
from holdfast.web.admin.letters import LetterResource
from holdfast.web.admin.messages import MessageResource
from holdfast.web.admin.now import LiveNow
from holdfast.web.admin.past import PastResource
from holdfast.web.admin.readers import ReaderResource
from holdfast.web.admin.sessions import SessionResource
from holdfast.web.admin.shards import ShardViews
from holdfast.web.admin.shared_queues import SharedQueueResource
from holdfast.web.admin.system import SystemResource
from holdfast.web.admin.tallying import Tallying
from holdfast.web.admin.topics import TopicResource
from holdfast.web.admin.upgrade import UpgradeResource
from holdfast.web.admin.webhooks import WebhookResource
from tests.store.servers import ValkeyServer
from tests.store.store_process import StoreProcess, store_process, until
from tests.unit.bayeux.harness import Asked, Client, Json, Server
from tests.unit.bayeux.operated_server import replaying_of

if TYPE_CHECKING:
    from tests.unit.delivery.fake_keeper import FakeKeeper


LETTER_AGE_MS = 3_600_000


class Api(NamedTuple):
    """The resources of the administration."""

    sessions: SessionResource
    queues: SharedQueueResource
    readers: ReaderResource
    webhooks: WebhookResource
    delayed: DelayedResource
    topics: TopicResource
    letters: LetterResource
    messages: MessageResource
    past: PastResource
    upgrade: UpgradeResource
    hosts: HostResource
    system: SystemResource


class LiveServer(Server):
    """A server whose turns end with those of the event loop; its wall clock is the real one."""

    def __init__(self, here: StoreProcess, **options: Any) -> None:
        self.store_process = here
        self._newest = 0
        super().__init__(
            DeliveryWire,
            partial(Ack, announces_batch=False),
            keeper=cast("FakeKeeper", here.store),
            **options,
        )
        reader, stamp = here.reader, self._stamp
        self.letters = Letters(here.store, reader, stamp)
        self.audit = Audit(here.store, reader)
        self.replays = Replays(
            here.store,
            self.letters,
            reader,
            receivers=replaying_of(self),
            audit=self.audit,
            new_id=lambda: f"{stamp():019d}",
        )
        self.running = server = RunningServer(
            self.bayeux.life,
            lambda: self.now,
            self.audit,
            version="1.2",
            letter_age_ms=LETTER_AGE_MS,
            keeps_journal=True,
        )
        search, keys, state = self.letters.search, here.store.keys, self.bayeux.state
        self.alerts = Alerts()
        figures = LiveFigures(
            state,
            alerts=self.alerts,
            clock=lambda: self.now,
            version="1.2",
            letters=self.letters.search.statistics,
        )
        # What the clocks show for the figures of the past.
        self.wall_s, self.running_s = 1_790_000_000.0, 0.0
        tallying = Tallying(state, lambda: self.now)
        self.figure_keeper = FigureKeeper(
            state,
            PastFigures(here.store, reader),
            FigureReadings(state, OwnFigures(), lambda: self.replays.begun),
            tallying,
            wall_s=lambda: self.wall_s,
            clock=lambda: self.running_s,
        )
        shards = ShardViews(state, 0, (), dict, figures.started, dict, dict)
        now = LiveNow(server, figures, tallying, search, self.alerts, shards)
        self.results, frames = (
            PipelineResults(reader, keys),
            JournalFrames(reader, keys, state.node.name),
        )
        self.alert_limits = AlertLimits()
        self.replicas_complaint = ""
        self.alert_watch = AlertWatch(
            server,
            tallying,
            self.alerts,
            lambda: self.alert_limits,
            results=self.results,
            frames=frames,
            replicas=lambda: self.replicas_complaint,
        )
        self.api = Api(
            SessionResource(server, search),
            SharedQueueResource(server),
            ReaderResource(server),
            WebhookResource(server),
            DelayedResource(server),
            TopicResource(server),
            LetterResource(server, self.letters, self.replays),
            MessageResource(server, search, frames),
            PastResource(self.figure_keeper, 0),
            UpgradeResource(server, here.store.layout, self._finish_upgrade),
            HostResource(server, None),
            SystemResource(
                server,
                figures=figures,
                now=now,
                shards=shards,
                letters=search,
                results=self.results,
            ),
        )

    async def _finish_upgrade(self) -> None:
        store = self.store_process.store
        await store.run(finish_upgrade(store.keys))
        store.layout.enter(LAYOUT)

    def _stamp(self) -> int:
        self._newest = max(self._newest + 1, time.time_ns())
        return self._newest

    def sleep(self, seconds: float) -> None:
        """The wall clock is set forward."""
        self._newest = max(self._newest, time.time_ns()) + round(seconds * 1_000_000_000)

    def _on_ready(self) -> None:
        asyncio.get_running_loop().call_soon(lambda: self.bayeux.flush(self.now))

    def turn(self) -> None:
        """Do nothing: turns end with those of the event loop."""

    async def receiver(self, session: str | None = "joe/1", **options: Any) -> Client:
        """A session that acknowledges and gives verdicts, subscribed to /a."""
        if session is not None:
            options["session"] = session
        client = self.guest()
        asked = client.handshake(ext={"ack": True, "delivery": options or True})
        await until(lambda: not asked.is_held)
        client.learn(asked)
        await self.connect(client)
        client.subscribe("/a")
        await self.store_process.answered()
        return client

    async def connect(self, client: Client, *verdicts: Json) -> Asked:
        """A connect that does not wait, and acknowledges what came before."""
        ext = {"ack": client.session.queue.batch, "delivery": {"verdicts": list(verdicts)}}
        asked = client.connect(advice={"timeout": 0}, ext=ext)
        await until(lambda: not asked.is_held)
        return asked

    async def publish(self, *data: object) -> None:
        for each in data:
            self.for_extensions.publish("/a", each)
        await self.store_process.answered()

    async def refuse(self, client: Client, code: str, text: str = "") -> None:
        """Refuse all entries that the client is handed, with this code."""
        events = (await self.connect(client)).events
        seqs = [event["ext"]["delivery"]["seq"] for event in events]
        verdicts = ({"seq": seq, "errorCode": code, "message": text} for seq in seqs)
        await self.connect(client, *verdicts)
        await self.store_process.answered()

    async def dead(self) -> list[Letter]:
        """All dead letters with all their fields, the newest first."""
        page = await self.api.letters.letters(LetterFilter(), None, 500)
        return [await self.api.letters.letter(item.id) for item in page.items]

    async def audited(self) -> list[AuditEntry]:
        """The entries of the audit, the newest first."""
        await self.store_process.answered_line()
        return (await self.api.system.audit(None, 100)).items

    async def killed(self, *data: object, key: str = "joe/1") -> None:
        """End a session with these messages, which become dead letters."""
        await self.receiver(key)
        await self.publish(*data)
        await self.api.sessions.end_session(key, "operator")
        await self.store_process.answered()


def refused_with(code: str) -> Any:
    """Check that the block fails with this code."""
    return pytest.raises(RequestFailed, match=f"^{code}:")


@asynccontextmanager
async def server_at(valkey: ValkeyServer, **options: Any) -> AsyncIterator[LiveServer]:
    """A server with this store."""
    async with store_process(valkey) as here:
        server = LiveServer(here, **options)
        try:
            yield server
        finally:
            await server.replays.close()
