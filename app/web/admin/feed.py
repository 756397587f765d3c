"""Tells operators who listen on `/sys/figures` what the server is doing, once a second at most."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import orjson

from app.bayeux.server import Bayeux
from app.bayeux.sessions import Session
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
        # Numbers of sessions that were waiting for a reading when there was one.
        self._waiting: set[int] = set()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            try:
                await self.tell()
            except Exception:
                log.exception("figures could not be told")

    async def tell(self) -> None:
        """The figures of this moment, if they are not those of the last one."""
        self._desk.watch(is_watched=bool(self._subscribers()))
        if not self._subscribers():
            return
        figures = await self._desk.read()
        if figures is not self._told:
            self._told = figures
            self._publish(orjson.dumps({"channel": CHANNEL, "data": figures}))

    def _subscribers(self) -> Sequence[Session]:
        return self._bayeux.hub.routes.receivers(self._channel)

    def _publish(self, wire: bytes) -> None:
        bayeux = self._bayeux
        bayeux.now = self._clock()
        message = Message(wire, id=bayeux.node.stamp(), channel=CHANNEL)
        message.limit_life(_LIFE_MS, is_forced=True)
        message.leaves_no_letter = True
        bayeux.hub.publish_to([each for each in self._subscribers() if self._wants(each)], message)
        self._waiting &= {each.number for each in self._subscribers()}

    def _wants(self, session: Session) -> bool:
        """Whether a reading is worth something to it.

        Who waited for the readings before and does not now is between two connects, or gone. Who
        never waits, and asks now and then, finds the first that it has not outlived.
        """
        if session.is_reachable:
            self._waiting.add(session.number)
            return True
        if session.number in self._waiting:
            return False
        return all(message.channel != CHANNEL for message in session.queue.waiting)
