"""Publishes live figures on `/sys/figures`, at most once a second."""

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import orjson

from holdfast.bayeux.session import Session
from holdfast.delivery.basics.channels import Channels
from holdfast.delivery.basics.node import Node
from holdfast.delivery.letters.exempt import leave_no_letter
from holdfast.delivery.messages.message import Message
from holdfast.delivery.routing.hub import Hub

if TYPE_CHECKING:
    from holdfast.web.admin.system_views import Figures

log = logging.getLogger(__name__)

CHANNEL = "/sys/figures"
_EVERY_S = 1.0
# Old readings are useless: a client that polls rarely gets only the last few.
_LIFE_MS = 5_000


class Figured(Protocol):
    """The live figures: of this server, or of several shards."""

    def watch(self, *, is_watched: bool) -> None:
        """Begin or end the measurement of what costs time."""
        ...

    async def read(self) -> "Figures | dict[str, Any]":
        """Return a reading; the same object while it is the same."""
        ...


class Feed:
    """Publishes live figures while a client waits for them."""

    def __init__(self, figures: Figured, channels: Channels, hub: Hub[Session], node: Node) -> None:
        self._figures = figures
        self._hub = hub
        self._node = node
        self._channel = channels.named(CHANNEL)
        self._published: Figures | dict[str, Any] | None = None
        # Numbers of the sessions that were waiting at the last reading.
        self._waiting: set[int] = set()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            try:
                await self.publish()
            except Exception:
                log.exception("live figures could not be published")

    async def publish(self) -> None:
        """Publish a reading, unless it is the same as the last one."""
        self._figures.watch(is_watched=bool(self._subscribers()))
        if not self._subscribers():
            return
        figures = await self._figures.read()
        if figures is not self._published:
            self._published = figures
            self._publish(orjson.dumps({"channel": CHANNEL, "data": figures}))

    def _subscribers(self) -> Sequence[Session]:
        return self._hub.routes.receivers(self._channel)

    def _publish(self, wire: bytes) -> None:
        message = Message(wire, id=self._node.stamp(), channel=CHANNEL)
        message.limit_life(_LIFE_MS, is_forced=True)
        leave_no_letter(message)
        self._hub.publish_to([each for each in self._subscribers() if self._wants(each)], message)
        self._waiting &= {each.number for each in self._subscribers()}

    def _wants(self, session: Session) -> bool:
        """Return whether a client can use a reading now.

        A client that waited for the previous readings and is not waiting now is between two
        connects, or gone. A client that polls now and then gets the oldest reading that is still
        valid.
        """
        if session.is_reachable:
            self._waiting.add(session.number)
            return True
        if session.number in self._waiting:
            return False
        return all(message.channel != CHANNEL for message in session.queue.new)
