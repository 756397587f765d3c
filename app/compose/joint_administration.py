"""The administration of a worker among others: what it asks them, and what it answers them."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING

from holdfast.cluster.shards import Shards as Homes
from holdfast.compose.forwarding import bound
from holdfast.compose.placement import Placement
from holdfast.web.admin.routing import Handlers
from holdfast.web.joint.answering import among, make_private
from holdfast.web.joint.asking import Shards
from holdfast.web.joint.commands import JointCommands
from holdfast.web.joint.live import JointFigures
from holdfast.web.joint.metrics_page import JointMetrics
from holdfast.web.joint.private_listener import PrivateListener
from holdfast.web.scheduling.speaking import SpeakingRight, until_speaking

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.web.admin.figures import LiveFigures
    from holdfast.web.admin.route import Route
    from holdfast.web.admin.routing import Handler
    from holdfast.web.prometheus.metrics import Metrics


class JointAdministration:
    """Answers for all shards, at any worker.

    Args:
        homes: Says which shard has what.
        new_id: Returns an id that no shard gives to anything else.
        restarts: Returns how often a shard got another worker, because one had ended.
    """

    def __init__(
        self,
        placement: Placement,
        homes: Homes,
        new_id: Callable[[], str],
        restarts: Callable[[int], int],
    ) -> None:
        sockets = [placement.admin_of(shard) for shard in range(placement.count)]
        self.shards = Shards(placement.number, sockets, new_id)
        self._homes = homes
        self._restarts = restarts
        self._socket = sockets[placement.number]
        self._commands = JointCommands(self.shards)
        self.run_anywhere = self._commands.run_anywhere

    def among(self, own: Handlers) -> Handlers:
        """Return what answers for all shards, given what answers for this one."""

        async def joined() -> "Sequence[tuple[Route, Handler]]":
            return [
                (route, among(self.shards, self._homes, route, handler))
                for route, handler in await own()
            ]

        return joined

    def figures(self, own: "LiveFigures") -> JointFigures:
        """Return the figures of all shards."""
        return JointFigures(self.shards, own)

    async def open(
        self, metrics: "Metrics", own: Handlers, right: SpeakingRight, stack: AsyncExitStack
    ) -> JointMetrics:
        """Answer other workers; returns the metrics of all. The stack ends it."""
        # Others wait only a second for the first answer.
        await own()
        application = make_private(own, metrics.text, partial(until_speaking, right))
        listener = PrivateListener(application)
        # An earlier process of this shard no longer answers there.
        await listener.open(await asyncio.to_thread(bound, self._socket))
        stack.push_async_callback(self.shards.close)
        stack.callback(self._commands.close)
        stack.push_async_callback(listener.close)
        return JointMetrics(self.shards, metrics.text, self._restarts)
