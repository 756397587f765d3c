"""A Bayeux server over a real store, and the administration of both; no HTTP between."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import pytest

from app.bayeux.registry import LiveRegistry, Process
from app.bayeux.replaying import Replaying
from app.store.audit import Audit
from app.store.journal_frames import JournalFrames
from app.store.letters import Letters
from app.store.pipeline_results import PipelineResults
from app.store.replays import Replays
from app.web.admin.figures import FigureDesk
from app.web.admin.live import Live
from app.web.admin.live_sights import Sources
from app.web.admin.operations import LetterFilter, OperationFailed
from app.web.admin.patience import Patience
from app.web.admin.shapes import AuditEntry, Letter
from extensions.ack import Ack
from extensions.delivery import Delivery
from tests.store.desk import Desk, desk, until
from tests.store.servers import ValkeyServer
from tests.unit.bayeux.harness import Asked, Client, House, Json

if TYPE_CHECKING:
    from tests.unit.delivery.fake_keeper import FakeKeeper


LETTER_AGE_MS = 3_600_000


class LiveHouse(House):
    """Its turns end with those of the event loop, and its wall clock is the real one."""

    def __init__(self, here: Desk, **options: Any) -> None:
        self.desk = here
        self._newest = 0
        super().__init__(
            Delivery,
            partial(Ack, announces_batch=False),
            keeper=cast("FakeKeeper", here.store),
            **options,
        )
        reader, stamp = here.redis, self._stamp
        self.letters = Letters(here.store, reader, stamp)
        self.audit = Audit(here.line, reader, here.store.keys)
        self.replays = Replays(
            here.store,
            self.letters.search,
            reader,
            receivers=Replaying(self.bayeux),
            audit=self.audit,
            new_id=lambda: f"{stamp():019d}",
        )
        self.live = Live(
            self.bayeux,
            clock=lambda: self.now,
            registry=partial(LiveRegistry, self.bayeux, Process("1.2", 0)),
            letters=self.letters,
            letter_age_ms=LETTER_AGE_MS,
            replays=self.replays,
            audit=self.audit,
            patience=Patience(self.bayeux, lambda: self.now),
            sources=Sources(
                FigureDesk(
                    self.bayeux,
                    clock=lambda: self.now,
                    version="1.2",
                    letters=self.letters.standing,
                ),
                JournalFrames(reader, here.store.keys),
                PipelineResults(reader, here.store.keys),
                version="1.2",
                keeps_journal=True,
            ),
        )

    def _stamp(self) -> int:
        self._newest = max(self._newest + 1, time.time_ns())
        return self._newest

    def _on_ready(self) -> None:
        asyncio.get_running_loop().call_soon(lambda: self.bayeux.flush(self.now))

    def turn(self) -> None:
        """The event loop does this by itself."""

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
        await self.desk.answered()
        return client

    async def connect(self, client: Client, *verdicts: Json) -> Asked:
        """A connect that does not wait, and acknowledges what came before."""
        ext = {"ack": client.session.queue.batch, "delivery": {"verdicts": list(verdicts)}}
        asked = client.connect(advice={"timeout": 0}, ext=ext)
        await until(lambda: not asked.is_held)
        return asked

    async def publish(self, *data: object) -> None:
        for each in data:
            self.bayeux.publish("/a", each)
        await self.desk.answered()

    async def refuse(self, client: Client, code: str, text: str = "") -> None:
        """The client says this of everything that it is given."""
        events = (await self.connect(client)).events
        seqs = [event["ext"]["delivery"]["seq"] for event in events]
        verdicts = ({"seq": seq, "errorCode": code, "message": text} for seq in seqs)
        await self.connect(client, *verdicts)
        await self.desk.answered()

    async def dead(self) -> list[Letter]:
        """All dead letters, whole, the latest first."""
        page = await self.live.letters(LetterFilter(), None, 500)
        return [await self.live.letter(item.id) for item in page.items]

    async def audited(self) -> list[AuditEntry]:
        """What stands in the audit, the latest first."""
        await self.desk.answered_line()
        return (await self.live.audit(None, 100)).items

    async def killed(self, *data: object, key: str = "joe/1") -> None:
        """A session comes, gets these and is ended: they are dead letters."""
        await self.receiver(key)
        await self.publish(*data)
        await self.live.kill(key, "operator")
        await self.desk.answered()


def refused_with(code: str) -> Any:
    """The operation fails with this code."""
    return pytest.raises(OperationFailed, match=f"^{code}:")


@asynccontextmanager
async def house_at(server: ValkeyServer, **options: Any) -> AsyncIterator[LiveHouse]:
    """A house with this store."""
    async with desk(server) as here:
        house = LiveHouse(here, **options)
        try:
            yield house
        finally:
            await house.replays.close()
