"""The resource of what waits for subjects and in work queues, who receives it, and removing it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Annotated

from pydantic import Field

from holdfast.bayeux.session import Session
from holdfast.delivery.basics.node import NS_PER_MS
from holdfast.delivery.messages.entries import Entry as QueueEntry
from holdfast.delivery.shared_queues import shared_queues
from holdfast.delivery.shared_queues.work import PREFIX
from holdfast.store.format.operator_input import Channel, Count, Ms, Subject
from holdfast.web.admin.changes import RunningServer
from holdfast.web.admin.fields import Cursor, EntryLimit, Limit
from holdfast.web.admin.route import route
from holdfast.web.admin.session_views import (
    ClearedQueue,
    Entry,
    SessionSummary,
    entry,
    session_summary,
)
from holdfast.web.admin.sorting import Stretches, sortable, stretches_of
from holdfast.web.admin.views import Page, first_names

_SUBJECT = "/subjects/{subject}/queue"
_WORK = "/work-queue"
_Oldest = Annotated[Ms, Field(description="When the oldest waiting message was published.")]


@dataclass(frozen=True, slots=True)
class SubjectQueue:
    """The queue of one subject."""

    subject: str
    waiting: Count
    bytes: Count
    oldest: _Oldest


@dataclass(frozen=True, slots=True)
class WorkQueue:
    """The work queue of one channel."""

    channel: str
    waiting: Count
    bytes: Count
    oldest: _Oldest
    receivers: Annotated[Count, Field(description="Sessions that have subscribed to it.")]


class SharedQueueResource:
    """Answers requests about queues that sessions share; every change is audited."""

    def __init__(self, server: RunningServer) -> None:
        state = server.life.state
        self._server = server
        self._subjects, self._work = state.subjects, state.work
        self._channels, self._routes = state.channels, state.routes
        self._options, self._node = state.options, state.node

    def _subject_queues(self) -> Stretches[SubjectQueue]:
        return stretches_of(_waited_for(self._subjects), self._subject_queue)

    @route("GET", "/subjects")
    @sortable("subject", _subject_queues)
    async def subjects(self, cursor: Cursor = None, limit: Limit = 100) -> Page[SubjectQueue]:
        """List subjects that messages wait for, by name or sorted by a field."""
        found, after = _page(self._subjects, cursor, limit)
        return Page([self._subject_queue(each) for each in found], after)

    @staticmethod
    def _subject_queue(receiver: Session) -> SubjectQueue:
        return SubjectQueue(receiver.subject, *_waiting(receiver))

    @route("GET", _SUBJECT)
    async def subject_queue(self, subject: Subject, limit: EntryLimit = 20) -> list[Entry]:
        """Show the first messages that wait for a subject, in order of delivery."""
        return self._first(self._subjects.queue(subject), limit)

    @route("DELETE", _SUBJECT)
    async def clear_subject(self, subject: Subject, who: str) -> ClearedQueue:
        """Discard all messages that wait for a subject."""
        return await self._clear("subject.clear", subject, self._subjects.queue(subject), who)

    def _work_queues(self) -> Stretches[WorkQueue]:
        return stretches_of(_waited_for(self._work), self._work_queue)

    @route("GET", "/work-queues")
    @sortable("channel", _work_queues)
    async def work_queues(self, cursor: Cursor = None, limit: Limit = 100) -> Page[WorkQueue]:
        """List work queues in which messages wait, by channel or sorted by a field."""
        found, after = _page(self._work, cursor and PREFIX + cursor, limit)
        items = [self._work_queue(each) for each in found]
        return Page(items, after and after.removeprefix(PREFIX))

    def _work_queue(self, receiver: Session) -> WorkQueue:
        channel = receiver.subject.removeprefix(PREFIX)
        count = len(self._receivers(channel)) + self._work.takers_elsewhere(channel)
        return WorkQueue(channel, *_waiting(receiver), count)

    @route("GET", _WORK)
    async def work_queue(self, channel: Channel, limit: EntryLimit = 20) -> list[Entry]:
        """Show the first messages that wait in a work queue, in order of delivery."""
        return self._first(self._work.of(channel), limit)

    @route("GET", f"{_WORK}/receivers")
    async def work_receivers(
        self, channel: Channel, limit: EntryLimit = 20
    ) -> list[SessionSummary]:
        """Show the receivers of a work queue, with their entries waiting and in flight."""
        now = self._server.clock()
        return [
            session_summary(self._options, self._node, each, now)
            for each in self._receivers(channel)[:limit]
        ]

    def _receivers(self, name: str) -> Sequence[Session]:
        channel = self._channels.get(name)
        return () if channel is None else self._routes.receivers(channel)

    @route("DELETE", _WORK)
    async def clear_work_queue(self, channel: Channel, who: str) -> ClearedQueue:
        """Discard all messages that wait in a work queue."""
        return await self._clear("work.clear", channel, self._work.of(channel), who)

    def _first(self, receiver: Session | None, limit: int) -> list[Entry]:
        """Return the first messages of a queue, which need not exist while nothing waits."""
        if receiver is None:
            return []
        waiting = islice(map(QueueEntry, receiver.queue.new), limit)
        return [entry(self._node, receiver, each) for each in waiting]

    async def _clear(
        self, action: str, name: str, receiver: Session | None, who: str
    ) -> ClearedQueue:
        async with self._server.change(who, action, name) as detail:
            discarded = 0 if receiver is None else self._server.life.clear(receiver)
            detail["discarded"] = discarded
        return ClearedQueue(discarded)


def _page(
    queues: shared_queues.SharedQueues[Session], cursor: str | None, limit: int
) -> tuple[list[Session], str | None]:
    """Return the receivers that have the first queues by name, and the name to go on from."""
    waiting = {each.subject: each for each in _waited_for(queues)}
    found, after = first_names(waiting, cursor, limit)
    return [waiting[name] for name in found], after


def _waited_for(queues: shared_queues.SharedQueues[Session]) -> list[Session]:
    return [each for each in queues.queues() if each.queue.new]


def _waiting(receiver: Session) -> tuple[int, int, int]:
    """Return how many messages wait, their bytes, and when the oldest was published."""
    waiting = receiver.queue.new
    # What waits may have been taken meanwhile.
    oldest = min((message.id for message in waiting), default=0)
    return len(waiting), sum([len(each.wire) for each in waiting]), oldest // NS_PER_MS
