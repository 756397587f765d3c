"""The administration of a worker among others: what it asks them, and what it answers them."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING

from holdfast.cluster.shards import Shards as Homes
from holdfast.compose.forwarding import Forwarding
from holdfast.web.admin.handlers import Ask, Handler
from holdfast.web.admin.routing import Handlers
from holdfast.web.joint.all_histories import JointStreams
from holdfast.web.joint.answering import among
from holdfast.web.joint.asking import METRICS, Here, Shards
from holdfast.web.joint.commands import JointCommands
from holdfast.web.joint.live import JointFigures
from holdfast.web.joint.metrics_page import JointMetrics
from holdfast.web.prometheus.forms import Form
from holdfast.web.scheduling.speaking import until_speaking

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.web.admin.figures import LiveFigures
    from holdfast.web.answering.endpoint import Endpoint
    from holdfast.web.prometheus.metrics import Metrics


class JointAdministration:
    """Answers for all shards, at any worker.

    Args:
        number: This shard, or `NO_SHARD`.
        own: What answers for it.
        homes: Says which shard has what.
        new_id: Returns an id that no shard gives to anything else.
        restarts: Returns how often a shard got another worker, because one had ended.
    """

    def __init__(
        self,
        number: int,
        forwarding: Forwarding,
        own: Handlers,
        endpoint: "Endpoint",
        homes: Homes,
        new_id: Callable[[], str],
        restarts: Callable[[int], int],
    ) -> None:
        self._own, self._asked = own, forwarding.asked
        self._here = Here(own, partial(until_speaking, endpoint.right))
        self._shards = Shards(number, forwarding.asks, self._here, new_id, homes)
        self._restarts = restarts
        # What reads the histories of all shards.
        self.streams = JointStreams(
            self._shards, homes.division, endpoint.bayeux, endpoint.scheduler.next_reader
        )
        self._commands = JointCommands(self._shards)
        self.run_anywhere = self._commands.run_anywhere

    async def handlers(self) -> "Sequence[Handler]":
        """Return what answers each route for all shards."""
        return [among(self._shards, each) for each in await self._own()]

    def figures(self, own: "LiveFigures") -> JointFigures:
        """Return the figures of all shards."""
        return JointFigures(self._shards, own)

    async def open(self, metrics: "Metrics", stack: AsyncExitStack) -> JointMetrics:
        """Answer other workers; returns the metrics of all. The stack ends it."""

        async def page(ask: Ask) -> dict[str, str]:
            form = Form(ask.given.get("form", Form.TEXT.value))
            return {"page": (await metrics.text(form)).decode(), "form": form.value}

        # Others wait only a second for the first answer.
        await self._own()
        self._here.besides = (Handler(METRICS, page), *self.streams.handlers())
        self._asked.answering = self._here.answer_other
        stack.callback(self._commands.close)
        stack.push_async_callback(self._asked.close)
        own = metrics.text if self._shards.has_own else None
        return JointMetrics(self._shards, own, self._restarts)
