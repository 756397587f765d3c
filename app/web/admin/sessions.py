"""The resource of sessions: show them, hold them back, end them."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from heapq import nsmallest
from itertools import chain, islice
from operator import itemgetter

from holdfast.bayeux.session import Session
from holdfast.bayeux.sessions import interventions
from holdfast.bayeux.sessions.life import SessionLife
from holdfast.bayeux.sessions.status import created_ms, find, first_entries, hold_of, last_seen_ms
from holdfast.store.letters.filter import LetterFilter
from holdfast.store.letters.search import LetterSearch
from holdfast.store.links.connection import StoreUnavailable
from holdfast.web.admin import session_views as views
from holdfast.web.admin.changes import RunningServer, change, check_sweep
from holdfast.web.admin.faults import UNKNOWN_SESSION, RequestFailed, illegal
from holdfast.web.admin.fields import (
    All,
    Cursor,
    DryRun,
    EntryLimit,
    HoldEnd,
    Limit,
    SessionLimit,
    Text,
)
from holdfast.web.admin.route import route
from holdfast.web.admin.session_filter import ALL_SESSIONS, SessionFilter
from holdfast.web.admin.sorting import Stretches, sortable, stretches_of
from holdfast.web.admin.views import Page, view_of

log = logging.getLogger(__name__)

# How many sessions are looked at before other tasks run.
_STRETCH = 2000
_SESSION = "/sessions/{subject}/{number}"


class SessionResource:
    """Answers requests about sessions; every change is audited."""

    def __init__(self, server: RunningServer, letters: LetterSearch) -> None:
        self._server, self._life = server, server.life
        state = server.life.state
        self._options, self._node, self._all = state.options, state.node, state.sessions
        self._letters = letters

    async def _summaries(self, filter: SessionFilter) -> Stretches[views.SessionSummary]:
        """Yield the matching sessions in smaller parts: what is shown of each takes its time."""
        async for matching in self._matching(filter):
            there = (each for each in matching if not each.is_gone)
            async for stretch in stretches_of(there, self._summary):
                yield stretch

    @route("GET", "/sessions")
    @sortable("key", _summaries)
    async def sessions(
        self, filter: SessionFilter, cursor: Cursor = None, limit: Limit = 100
    ) -> Page[views.SessionSummary]:
        """List sessions, by name or sorted by a field."""
        after = cursor or ""
        found: list[tuple[str, Session]] = []
        async for stretch in self._matching(filter):
            fit = ((each.key, each) for each in stretch if each.key > after)
            found = nsmallest(limit + 1, chain(found, fit), key=itemgetter(0))
        items = [self._summary(session) for _, session in found[:limit] if not session.is_gone]
        return Page(items, found[limit - 1][0] if len(found) > limit else None)

    def _summary(self, session: Session) -> views.SessionSummary:
        return views.session_summary(self._options, self._node, session, self._server.clock())

    @route("POST", "/sessions/end")
    async def end_sessions(
        self,
        filter: SessionFilter = ALL_SESSIONS,
        limit: SessionLimit = 500,
        *,
        all: All = False,
        dry_run: DryRun,
        who: str,
    ) -> views.EndedSessions:
        """End matching sessions; their queues become dead letters."""
        check_sweep(filter, all=all)
        found = [session async for stretch in self._matching(filter) for session in stretch]
        entries = sum(session.queue.count for session in found)
        if dry_run:
            return views.EndedSessions(len(found), entries, 0, True)
        given = filter.model_dump(exclude_defaults=True)
        async with self._server.change(who, "sessions.end", "", filter=given, ended=0) as detail:
            async for session in self._in_turns(found):
                if detail["ended"] == limit:
                    break
                if _fits(self._life, session, filter, self._server.clock()):
                    interventions.end(self._life, session, who, self._server.clock())
                    detail["ended"] += 1
        return views.EndedSessions(len(found), entries, detail["ended"], False)

    @route("GET", _SESSION)
    async def session(self, key: str) -> views.Session:
        """Show one session."""
        return await self._view(self._find(key))

    @route("DELETE", _SESSION)
    async def end_session(self, key: str, who: str) -> None:
        """End a session; its queue becomes dead letters."""
        async with self._server.change(who, "session.end", key):
            interventions.end(self._life, self._find(key), who, self._server.clock())

    @route("GET", _SESSION + "/queue")
    async def peek(self, key: str, limit: EntryLimit = 20) -> list[views.Entry]:
        """Show the first entries of a session's queue, in order of delivery."""
        session = self._find(key)
        entries = first_entries(session.queue, limit)
        return [views.entry(self._node, session, entry) for entry in entries]

    @route("DELETE", _SESSION + "/queue")
    async def clear(self, key: str, who: str) -> views.ClearedQueue:
        """Discard all entries of a session's queue."""
        async with self._server.change(who, "session.clear", key) as detail:
            detail["discarded"] = discarded = self._life.clear(self._find(key))
        return views.ClearedQueue(discarded)

    @route("PUT", _SESSION + "/hold")
    async def hold(
        self, key: str, reason: Text = "", until: HoldEnd = None, *, who: str
    ) -> views.ChangedSession:
        """Hold back a session's delivery until the given time, or until it is resumed."""
        audit = self._server.audit
        with change(audit, who, "session.hold", key, reason=reason, until=until):
            session = self._find(key)
            if until is not None and until <= self._node.now_ms():
                raise illegal("until: this time is in the past")
            self._life.hold_back(session, reason, who=who, now=self._server.clock(), until_ms=until)
        return await self._changed(session)

    @route("DELETE", _SESSION + "/hold")
    async def resume(self, key: str, who: str) -> views.ChangedSession:
        """Resume a session's delivery."""
        with change(self._server.audit, who, "session.resume", key):
            session = self._find(key)
            self._life.resume(session, self._server.clock(), who=who)
        return await self._changed(session)

    async def _changed(self, session: Session) -> views.ChangedSession:
        is_kept = await self._server.kept()
        # Of a session that ends with the server, the store has nothing.
        unstored = session.is_durable and not is_kept
        return view_of(views.ChangedSession, await self._view(session), unstored=unstored)

    async def _matching(self, filter: SessionFilter) -> AsyncIterator[list[Session]]:
        """Yield the matching sessions in parts; other tasks run between them."""
        sessions = iter(list(self._all))
        while stretch := list(islice(sessions, _STRETCH)):
            yield [
                session
                for session in stretch
                if _fits(self._life, session, filter, self._server.clock())
            ]
            await asyncio.sleep(0)

    async def _in_turns(self, sessions: Iterable[Session]) -> AsyncIterator[Session]:
        """Yield the sessions one by one, while the store has room for their letters."""
        for session in sessions:
            if self._life.undelivered.is_congested:
                await self._server.kept()
                if self._life.undelivered.is_congested:
                    return
            yield session
            if self._life.state.is_turn_over():
                await asyncio.sleep(0)

    def _find(self, key: str) -> Session:
        session = find(self._all, key)
        if session is None:
            raise RequestFailed(UNKNOWN_SESSION, f"there is no session {key}")
        return session

    async def _view(self, session: Session) -> views.Session:
        dead, last = 0, None
        filter = LetterFilter(receiver=session.key)
        try:
            page = await self._letters.query(filter, None, 1)
            dead, last = await self._letters.count(filter), next(iter(page.letters), None)
        except StoreUnavailable as error:
            # The change has been made, and the server itself knows most of the answer.
            log.warning("cannot read the dead letters of session %s: %s", session.key, error)
        return views.whole_session(
            self._options, self._node, session, dead, last, self._server.clock()
        )


def _fits(life: SessionLife, session: Session, filter: SessionFilter, now: float) -> bool:
    """Return whether all conditions hold, the cheap ones first."""
    return (
        not session.is_gone
        and session.key.startswith(filter.prefix)
        and filter.state in (None, session.connection_state)
        and filter.held in (None, hold_of(session) is not None)
        and filter.unconnected in (None, session in life.unconnected)
        and (filter.channel is None or filter.channel in session.subscriptions)
        and (filter.begun_before is None or created_ms(session) < filter.begun_before)
        and (
            filter.seen_before is None
            or last_seen_ms(life.state.options, life.state.node, session, now) < filter.seen_before
        )
    )
