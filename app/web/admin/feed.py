"""Tells operators who listen on `/sys/figures` what the server is doing, once a second at most."""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import orjson

from app.bayeux.server import Bayeux
from app.delivery.messages import Message
from app.web.admin.figures import FigureDesk

if TYPE_CHECKING:
    from app.web.admin.sights import Figures

log = logging.getLogger(__name__)

CHANNEL = "/sys/figures"
_EVERY_S = 1.0
# Figures of the past are worth nothing: who comes late gets the last few.
_LIFE_MS = 5_000


class Feed:
    """Publishes figures while somebody may read them and wants to; else it only looks for one."""

    def __init__(self, bayeux: Bayeux, desk: FigureDesk, clock: Callable[[], float]) -> None:
        self._bayeux = bayeux
        self._desk = desk
        self._clock = clock
        self._channel = bayeux.channels.named(CHANNEL)
        self._told: Figures | None = None

    async def run(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            try:
                await self.tell()
            except Exception:
                log.exception("figures could not be told")

    async def tell(self) -> None:
        """The figures of this moment, if they are not those of the last one."""
        is_watched = bool(self._bayeux.hub.routes.receivers(self._channel))
        self._desk.watch(is_watched=is_watched)
        if not is_watched:
            return
        figures = await self._desk.read()
        if figures is not self._told:
            self._told = figures
            self._publish(orjson.dumps({"channel": CHANNEL, "data": figures}))

    def _publish(self, wire: bytes) -> None:
        bayeux = self._bayeux
        bayeux.now = self._clock()
        message = Message(wire, id=bayeux.node.stamp(), channel=CHANNEL)
        message.life_ms = _LIFE_MS
        message.is_mortal = message.leaves_no_letter = True
        message.expires_at = bayeux.now + _LIFE_MS / 1000
        bayeux.hub.publish(self._channel, message, persistent=False)
