"""The service for the queues of subjects: what waits for subjects, and removing it."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from holdfast.store.fields import Count, Ms, Subject
from holdfast.web.admin.changes import RunningServer
from holdfast.web.admin.fields import Cursor, EntryLimit, Limit
from holdfast.web.admin.route import route
from holdfast.web.admin.session_views import ClearedQueue, Entry
from holdfast.web.admin.shared_queues import QueuesByName, oldest_ms
from holdfast.web.admin.views import Page

_QUEUE = "/subjects/{subject}/queue"


@dataclass(frozen=True, slots=True)
class SubjectQueue:
    """The queue of one subject."""

    subject: str
    waiting: Count
    bytes: Count
    oldest: Annotated[Ms, Field(description="When the oldest waiting message was published.")]


class Subjects:
    """Answers requests about the queues of subjects; every change is audited."""

    def __init__(self, server: RunningServer) -> None:
        self._queues = QueuesByName(server, server.state.ptp.subjects, "subject")

    @route("GET", "/subjects")
    async def subjects(self, cursor: Cursor = None, limit: Limit = 100) -> Page[SubjectQueue]:
        """List subjects that messages wait for, by name."""
        found, after = self._queues.page(cursor, limit)
        items = [
            SubjectQueue(each.subject, each.queue.count, each.queue.size, oldest_ms(each))
            for each in found
        ]
        return Page(items, after)

    @route("GET", _QUEUE)
    async def subject_queue(self, subject: Subject, limit: EntryLimit = 20) -> list[Entry]:
        """Show the first messages that wait for a subject, in order of delivery."""
        return self._queues.first(subject, limit)

    @route("DELETE", _QUEUE)
    async def clear_subject(self, subject: Subject, who: str) -> ClearedQueue:
        """Discard all messages that wait for a subject."""
        return await self._queues.clear(subject, who)
