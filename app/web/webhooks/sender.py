"""Sends what waits for one webhook: the client of its session."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence

from holdfast.bayeux.server import Bayeux
from holdfast.bayeux.sessions import of_server
from holdfast.bayeux.state.webhook_figures import WebhookFigures
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.errors import RequestRefused
from holdfast.settings.webhooks import WebhookSettings
from holdfast.web.scheduling.request_scheduler import RequestScheduler
from holdfast.web.tasks import cancel
from holdfast.web.webhooks.judging import outcome_of, verdict_of
from holdfast.web.webhooks.local_connection import LocalConnection, SessionOver
from holdfast.web.webhooks.posted_bodies import CHANNELS, Body, body_of
from holdfast.web.webhooks.posting import Posting

log = logging.getLogger(__name__)

_SERVICE = "/service/delivery"
# After a failure of the server: how long until the next attempt.
_AGAIN_S = 1.0
# A call that outlives its deadline must not be repeated by the queue.
_RESPONSE_TIMEOUT_MS = 600_000


class Sender:
    """Receives messages as the client of the webhook's session, posts them, and says verdicts."""

    def __init__(
        self,
        name: str,
        settings: WebhookSettings,
        posting: Posting,
        *,
        bayeux: Bayeux,
        requests: RequestScheduler,
        clock: Callable[[], float],
    ) -> None:
        self.name, self.settings = name, settings
        self._figures = bayeux.state.webhooks.setdefault(name, WebhookFigures(settings.origin))
        self._posting = posting
        self._bayeux, self._requests, self._clock = bayeux, requests, clock
        self._task: asyncio.Task[None] | None = None
        self._is_calling = self._is_pausing = False
        # Whether the session gets what the settings say.
        self.has_begun = asyncio.Event()

    def start(self) -> None:
        """Begin, or go on after a pause."""
        self._is_pausing = False
        self._task = asyncio.create_task(self._run())

    async def pause(self, limit_s: float) -> None:
        """Stop. A call that has begun has this time; after it, the message is sent again."""
        task, self._task = self._task, None
        if task is None:
            return
        self._is_pausing = True
        if self._is_calling:
            await asyncio.wait({task}, timeout=limit_s)
        await cancel(task)

    async def _run(self) -> None:
        while not self._is_pausing:
            connection = LocalConnection(self._requests)
            try:
                await self._serve(connection)
            except SessionOver:
                log.warning("webhook %s begins another session: its own has ended", self.name)
            except Exception:
                log.exception("webhook %s failed, and begins its session again", self.name)
            finally:
                connection.close()
            if not self._is_pausing:
                await asyncio.sleep(_AGAIN_S)

    async def _serve(self, connection: LocalConnection) -> None:
        state = self._bayeux.state
        if not state.store.is_available:
            # The session's record would not be stored.
            return
        options = {"retries": -1, "maxEntries": self.settings.in_flight}
        options |= {"responseTimeout": _RESPONSE_TIMEOUT_MS}
        session = of_server.begin(
            self._bayeux.life, self.name, options, pipe=connection, now=self._clock()
        )
        await self._subscribe(connection, set(session.subscriptions))
        self.has_begun.set()
        verdicts: list[Json] = []
        while True:
            ext = {"delivery": {"verdicts": verdicts}}
            reply, events = await self._ask(
                connection, {"channel": "/meta/connect", "connectionType": "websocket", "ext": ext}
            )
            if not reply["successful"]:
                await self._heed(reply)
                continue
            verdicts = await self._send(events)
            if self._is_pausing:
                await self._ask(connection, {"channel": _SERVICE, "data": verdicts})
                return

    async def _ask(self, connection: LocalConnection, message: Json) -> tuple[Json, list[Json]]:
        """Send a message until the server takes it: what it says must not be lost."""
        while True:
            try:
                return await connection.ask(message)
            except RequestRefused as refused:
                log.warning("webhook %s waits: %s", self.name, refused)
                await asyncio.sleep(_AGAIN_S)

    async def _subscribe(self, connection: LocalConnection, has: set[str]) -> None:
        wanted = {*self.settings.channels, *(CHANNELS[each] for each in self.settings.events)}
        if has - wanted:
            await self._ask(
                connection, {"channel": "/meta/unsubscribe", "subscription": sorted(has - wanted)}
            )
        for pattern in sorted(wanted):
            # It answers no requests, which would wait for it, and gets only what was published:
            # not that a topic was erased.
            ext = {"delivery": {"responds": False, "notify": False}}
            reply, _ = await self._ask(
                connection, {"channel": "/meta/subscribe", "subscription": pattern, "ext": ext}
            )
            if not reply["successful"]:
                log.error("webhook %s cannot have %s: %s", self.name, pattern, reply.get("error"))

    async def _heed(self, reply: Json) -> None:
        """Wait as long as the refused connect was told. Raises `SessionOver`."""
        advice = reply.get("advice") or {}
        if advice.get("reconnect") != "retry":
            raise SessionOver
        await asyncio.sleep(max(advice.get("interval", 0) / 1000, _AGAIN_S))

    async def _send(self, events: Sequence[Json]) -> list[Json]:
        """Post the events at the same time. Returns the verdicts."""
        if not events:
            return []
        self._is_calling = True
        try:
            return await asyncio.gather(*(self._attempt(body_of(each)) for each in events))
        finally:
            self._is_calling = False

    async def _attempt(self, body: Body) -> Json:
        answer = await self._posting.post(body)
        outcome = outcome_of(answer, body, self.settings.delays)
        self._figures.count(outcome, answer.text, time.time_ns() // 1_000_000)
        return verdict_of(outcome, answer, body, self.settings.delays)
