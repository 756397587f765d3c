"""The resource that finds one message and its history."""

import asyncio
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from socket import gethostname
from typing import TYPE_CHECKING

from holdfast.bayeux.session import Session
from holdfast.bayeux.sessions.status import hold_of, last_seen_ms
from holdfast.delivery.basics.node import NS_PER_MS
from holdfast.delivery.messages.entries import Entry
from holdfast.store.framing.journal_frames import JournalFrames
from holdfast.store.letters.filter import LetterFilter
from holdfast.store.letters.search import LetterSearch
from holdfast.web.admin.changes import RunningServer
from holdfast.web.admin.faults import CONFLICT, RequestFailed
from holdfast.web.admin.fields import FrameCursor, MessageId
from holdfast.web.admin.letter_views import LetterSummary, letter_summary
from holdfast.web.admin.message_views import Trace, TraceQueue, TraceStep, step_of
from holdfast.web.admin.route import route

if TYPE_CHECKING:
    from holdfast.web.admin.table_reader import TableReader

# How many entries are looked at before other tasks run.
_STRETCH = 20_000
_MOST_QUEUES = 1000
_MOST_LETTERS = 100
# Steps of letters, and frames of the journal, that one request looks at.
_LETTER_STEPS = 20
_FRAMES = 100
# How the names of tables in a bucket begin.
_BUCKETS = "s3://"


class MessageResource:
    """Finds a message in queues, among dead letters and in the journal, all of it bounded."""

    def __init__(self, server: RunningServer, letters: LetterSearch, frames: JournalFrames) -> None:
        state = server.life.state
        self._server, self._node = server, state.node
        self._sessions, self._waiting_places = state.sessions, state.waiting_places
        self._letters = letters
        self._frames = frames

    @cached_property
    def _tables(self) -> "TableReader":
        # Few servers are asked for steps in tables.
        from holdfast.web.admin.table_reader import TableReader

        return TableReader()

    @route("GET", "/messages/{id}")
    async def trace(self, id: MessageId, cursor: FrameCursor = None) -> Trace:
        """Show where a message is, and what happened to it."""
        # Operators ask for it now and then: a start need not wait for it.
        from holdfast.journal.tracing import events_of

        name, _, number = id.rpartition("-")
        ns = int(number)
        nodes = await self._frames.nodes()
        # In earlier releases, ids began with the name of the node.
        is_ours = name == self._node.deployment or name in nodes
        frames = await self._frames.since(
            nodes if is_ours else (), ns // NS_PER_MS, cursor, _FRAMES
        )
        lakes = await self._frames.lakes()
        events = await asyncio.to_thread(events_of, ns, [frame for _, frame in frames])
        is_first = is_ours and cursor is None
        queues = await self._queues(ns) if is_first else []
        letters, is_cut = await self._letters_of(ns) if is_first else ([], False)
        is_known = bool(queues or letters or events)
        return Trace(
            id=self._node.id_of(ns) if is_ours else id,
            published=ns // NS_PER_MS if is_known else None,
            journal=self._server.keeps_journal,
            lakes=lakes,
            queues=queues[:_MOST_QUEUES],
            letters=letters[:_MOST_LETTERS],
            is_cut=is_cut or len(queues) > _MOST_QUEUES,
            steps=[step_of(event) for event in events],
            cursor=frames[-1][0] if len(frames) >= _FRAMES else None,
        )

    @route("POST", "/messages/{id}/tables")
    async def table_steps(self, id: MessageId) -> list[TraceStep]:
        """Read the steps of a message from tables on the server's machine or in a bucket.

        Operators only, as a POST is: it starts a process.
        """
        lakes = await self._frames.lakes()
        machine = f"{gethostname()}:"
        places = (machine, _BUCKETS)
        here = [lake.removeprefix(machine) for lake in lakes if lake.startswith(places)]
        if not here:
            raise RequestFailed(
                CONFLICT, "the journal is read into no tables on this machine or in a bucket"
            )
        name, _, number = id.rpartition("-")
        # The tables have events of earlier releases under the names of nodes.
        names = {name, self._node.deployment}
        return await self._tables.steps(sorted(names), int(number), here)

    async def _queues(self, ns: int) -> list[TraceQueue]:
        """Return the queues that contain the message, at most one more than are shown.

        Each queue is searched at one moment, but not all at the same one.
        """
        found: list[TraceQueue] = []
        looked_at = 0
        for session in (*self._sessions, *self._waiting_places.queues()):
            found += islice(self._places(session, ns), 1)
            looked_at += session.queue.count + 1
            if len(found) > _MOST_QUEUES:
                break
            if looked_at > _STRETCH:
                looked_at = 0
                await asyncio.sleep(0)
        return found

    def _places(self, session: Session, ns: int) -> Iterator[TraceQueue]:
        queue = session.queue
        if not queue.count:
            return
        is_held = hold_of(session) is not None
        waiting, in_flight = queue.new, queue.in_flight()
        mine = [Entry(message) for message in waiting if message.id == ns]
        for entry in (*mine, *in_flight.values(), *queue.returned.values()):
            if entry.message.id == ns:
                yield TraceQueue(
                    session.key,
                    "in_flight" if entry.seq in in_flight else "waiting",
                    is_held,
                    entry.attempts,
                    entry.redelivered,
                    self._gone_since(session),
                )

    def _gone_since(self, session: Session) -> int | None:
        """Return since when a session has no client, in ms; None if it has one, or is only a place.

        Such a place, of a subject or of work, never had one.
        """
        if session.has_shared_queue or not (session.is_absent or session.is_away):
            return None
        options = self._server.life.state.options
        return last_seen_ms(options, self._node, session, self._server.clock())

    async def _letters_of(self, ns: int) -> tuple[list[LetterSummary], bool]:
        """Return the message's dead letters, and whether there may be others.

        It looks at a bounded number of the letters since the message was published.
        """
        found: list[LetterSummary] = []
        steps = 0
        async for letters, _ in self._letters.scan(LetterFilter(since=ns // NS_PER_MS)):
            if steps == _LETTER_STEPS or len(found) > _MOST_LETTERS:
                return found, True
            found += [
                letter_summary(self._node, letter, self._server.letter_age_ms)
                for letter in letters
                if letter.message == ns
            ]
            steps += 1
        return found, len(found) > _MOST_LETTERS
