"""The service for the queues of subjects: what waits for subjects, and removing it."""

from dataclasses import dataclass
from heapq import nsmallest
from typing import Annotated

from pydantic import Field

from holdfast.bayeux.session_status import first_entries
from holdfast.bayeux.sessions import Session
from holdfast.store.fields import Count, Ms, Subject
from holdfast.web.admin.changes import RunningServer
from holdfast.web.admin.faults import UNKNOWN, RequestFailed
from holdfast.web.admin.fields import Cursor, EntryLimit, Limit
from holdfast.web.admin.route import route
from holdfast.web.admin.session_views import ClearedQueue, Entry, entry
from holdfast.web.admin.views import Page

_NS_PER_MS = 1_000_000
_QUEUE = "/subjects/{subject}/queue"


@dataclass(frozen=True, slots=True)
class SubjectQueue:
    """What waits for one subject."""

    subject: str
    waiting: Count
    bytes: Count
    oldest: Annotated[Ms, Field(description="When the oldest waiting message was published.")]


class Subjects:
    """Answers requests about the queues of subjects; every change is audited."""

    def __init__(self, server: RunningServer) -> None:
        self._server = server
        self._state = server.state

    @route("GET", "/subjects")
    async def subjects(self, cursor: Cursor = None, limit: Limit = 100) -> Page[SubjectQueue]:
        """List subjects that messages wait for, by name."""
        waiting = {
            each.subject: each for each in self._state.ptp.subjects.queues() if each.queue.count
        }
        found = nsmallest(limit + 1, (name for name in waiting if name > (cursor or "")))
        items = [_view(waiting[name]) for name in found[:limit]]
        return Page(items, found[limit - 1] if len(found) > limit else None)

    @route("GET", _QUEUE)
    async def subject_queue(self, subject: Subject, limit: EntryLimit = 20) -> list[Entry]:
        """Show the first messages that wait for a subject, in order of delivery."""
        receiver = self._find(subject)
        return [entry(self._state, receiver, each) for each in first_entries(receiver.queue, limit)]

    @route("DELETE", _QUEUE)
    async def clear_subject(self, subject: Subject, who: str) -> ClearedQueue:
        """Discard all messages that wait for a subject."""
        async with self._server.change(who, "subject.clear", subject) as detail:
            detail["discarded"] = discarded = self._server.life.clear(self._find(subject))
        return ClearedQueue(discarded)

    def _find(self, subject: str) -> Session:
        receiver = self._state.ptp.subjects.queue(subject)
        if receiver is None or not receiver.queue.count:
            raise RequestFailed(UNKNOWN, f"no messages wait for the subject {subject}")
        return receiver


def _view(receiver: Session) -> SubjectQueue:
    queue = receiver.queue
    oldest = min(message.id for message in queue.waiting)
    return SubjectQueue(receiver.subject, queue.count, queue.size, oldest // _NS_PER_MS)
