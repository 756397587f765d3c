"""The service for work queues: what waits in them, who receives it, and discarding it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from holdfast.bayeux.sessions import Session
from holdfast.delivery.work_queues import PREFIX
from holdfast.store.fields import Channel, Count, Ms
from holdfast.web.admin.changes import RunningServer
from holdfast.web.admin.fields import Cursor, EntryLimit, Limit
from holdfast.web.admin.route import route
from holdfast.web.admin.session_views import (
    ClearedQueue,
    Entry,
    SessionSummary,
    session_summary,
)
from holdfast.web.admin.shared_queues import QueuesByName, oldest_ms
from holdfast.web.admin.views import Page

_QUEUE = "/work-queue"


@dataclass(frozen=True, slots=True)
class WorkQueue:
    """The work queue of one channel."""

    channel: str
    waiting: Count
    bytes: Count
    oldest: Annotated[Ms, Field(description="When the oldest waiting message was published.")]
    receivers: Annotated[Count, Field(description="Sessions that have subscribed to it.")]


class WorkQueues:
    """Answers requests about work queues; every change is audited."""

    def __init__(self, server: RunningServer) -> None:
        self._server = server
        self._queues = QueuesByName(server, server.state.work, "work", PREFIX)

    @route("GET", "/work-queues")
    async def work_queues(self, cursor: Cursor = None, limit: Limit = 100) -> Page[WorkQueue]:
        """List work queues in which messages wait, by channel."""
        found, after = self._queues.page(cursor, limit)
        return Page([self._view(each) for each in found], after)

    def _view(self, home: Session) -> WorkQueue:
        channel, queue = self._queues.name_of(home), home.queue
        receivers = len(self._receivers(channel))
        return WorkQueue(channel, queue.count, queue.size, oldest_ms(home), receivers)

    @route("GET", _QUEUE)
    async def work_queue(self, channel: Channel, limit: EntryLimit = 20) -> list[Entry]:
        """Show the first messages that wait in a work queue, in order of delivery."""
        return self._queues.first(channel, limit)

    @route("GET", f"{_QUEUE}/receivers")
    async def work_receivers(
        self, channel: Channel, limit: EntryLimit = 20
    ) -> list[SessionSummary]:
        """Show sessions that receive from a work queue, with what each has to do."""
        state, now = self._server.state, self._server.clock()
        found = self._receivers(channel)[:limit]
        return [session_summary(state, each, now) for each in found]

    def _receivers(self, name: str) -> Sequence[Session]:
        channel = self._server.state.channels.get(name)
        return () if channel is None else self._server.state.routes.receivers(channel)

    @route("DELETE", _QUEUE)
    async def clear_work_queue(self, channel: Channel, who: str) -> ClearedQueue:
        """Discard all messages that wait in a work queue."""
        return await self._queues.clear(channel, who)
