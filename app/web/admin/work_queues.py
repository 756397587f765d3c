"""The service for work queues: what waits in them for a receiver, and discarding it."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from holdfast.delivery.work_queues import PREFIX
from holdfast.store.fields import Channel, Count, Ms
from holdfast.web.admin.changes import RunningServer
from holdfast.web.admin.fields import Cursor, EntryLimit, Limit
from holdfast.web.admin.route import route
from holdfast.web.admin.session_views import ClearedQueue, Entry
from holdfast.web.admin.shared_queues import QueuesByName, oldest_ms
from holdfast.web.admin.views import Page

_QUEUE = "/work-queue"


@dataclass(frozen=True, slots=True)
class WorkQueue:
    """What waits in the work queue of one channel."""

    channel: str
    waiting: Count
    bytes: Count
    oldest: Annotated[Ms, Field(description="When the oldest waiting message was published.")]


class WorkQueues:
    """Answers requests about work queues; every change is audited."""

    def __init__(self, server: RunningServer) -> None:
        self._queues = QueuesByName(server, server.state.work, "work", PREFIX)

    @route("GET", "/work-queues")
    async def work_queues(self, cursor: Cursor = None, limit: Limit = 100) -> Page[WorkQueue]:
        """List work queues in which messages wait, by channel."""
        found, after = self._queues.page(cursor, limit)
        items = [
            WorkQueue(
                self._queues.name_of(each), each.queue.count, each.queue.size, oldest_ms(each)
            )
            for each in found
        ]
        return Page(items, after)

    @route("GET", _QUEUE)
    async def work_queue(self, channel: Channel, limit: EntryLimit = 20) -> list[Entry]:
        """Show the first messages that wait in a work queue, in order of delivery."""
        return self._queues.first(channel, limit)

    @route("DELETE", _QUEUE)
    async def clear_work_queue(self, channel: Channel, who: str) -> ClearedQueue:
        """Discard all messages that wait in a work queue."""
        return await self._queues.clear(channel, who)
