"""The administration of the running server: its sessions, and its dead letters in the store."""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from dataclasses import asdict
from heapq import nsmallest
from itertools import chain, islice
from operator import itemgetter
from typing import TYPE_CHECKING

from app.bayeux.commands import Command, Registry, Result, run
from app.bayeux.interventions import kill
from app.bayeux.server import Bayeux
from app.bayeux.sessions import Session
from app.bayeux.standing import (
    created_ms,
    find,
    first_entries,
    hold_of,
    last_seen_ms,
    wall_ms,
)
from app.delivery.dead_letters import DeadLetter
from app.delivery.guard import Held
from app.store.audit import Audit
from app.store.connection import StoreUnavailable
from app.store.letter_search import LetterFilter
from app.store.letters import Letters
from app.store.replays import Replays
from app.web.admin import shapes, showing
from app.web.admin.changes import asking, change, check_cursor
from app.web.admin.live_sights import LiveSights, Sources
from app.web.admin.operations import (
    ILLEGAL,
    UNKNOWN_CHANNEL,
    UNKNOWN_SESSION,
    OperationFailed,
    Operations,
    SessionFilter,
)
from app.web.admin.patience import Patience

log = logging.getLogger(__name__)

# Nothing is before 0-0, and Redis will not be asked for it.
_CURSOR = re.compile(r"(?!0+-0+$)[0-9]{1,19}-[0-9]{1,19}")
# Sessions looked at before others may go on.
_STRETCH = 2000
# How long the answer to a change waits for the store.
_PATIENCE_S = 5.0


class Live(LiveSights):
    """`Operations` over a Bayeux server and its store.

    Args:
        clock: Monotonic seconds, as the server counts them.
        registry: What commands are about, at this moment.
        letter_age_ms: How long dead letters are kept.
    """

    def __init__(
        self,
        bayeux: Bayeux,
        *,
        clock: Callable[[], float],
        registry: Callable[[], Registry],
        letters: Letters,
        letter_age_ms: int,
        replays: Replays,
        audit: Audit,
        patience: Patience,
        sources: Sources,
    ) -> None:
        super().__init__(bayeux, clock, letters, letter_age_ms, replays, audit, sources)
        self._registry = registry
        self._patience = patience

    # Sessions

    async def sessions(
        self, which: SessionFilter, cursor: str | None, limit: int
    ) -> shapes.Page[shapes.SessionSummary]:
        after = cursor or ""
        found: list[tuple[str, Session]] = []
        async for stretch in self._matching(which):
            fit = ((each.key, each) for each in stretch if each.key > after)
            found = nsmallest(limit + 1, chain(found, fit), key=itemgetter(0))
        self._wake()
        items = [
            showing.session_summary(self._bayeux, session)
            for _, session in found[:limit]
            if not session.is_gone
        ]
        return shapes.Page(items, found[limit - 1][0] if len(found) > limit else None)

    async def session(self, key: str) -> shapes.Session:
        return await self._show(self._find(key))

    async def peek(self, key: str, limit: int) -> list[shapes.Entry]:
        session = self._find(key)
        entries = first_entries(session.queue, limit)
        return [showing.entry(self._bayeux, session, entry) for entry in entries]

    async def kill(self, key: str, who: str) -> None:
        with change(self._audit, who, "session.kill", key):
            kill(self._bayeux, self._find(key), who)
        await self._kept()

    async def end_sessions(
        self, which: SessionFilter, limit: int, *, dry_run: bool, who: str
    ) -> shapes.Endings:
        found = [session async for stretch in self._matching(which) for session in stretch]
        entries = sum(session.queue.count for session in found)
        if dry_run:
            return shapes.Endings(len(found), entries, 0, True)
        given = {name: value for name, value in asdict(which).items() if value not in (None, "")}
        with change(self._audit, who, "sessions.end", "", filter=given, ended=0) as detail:
            async for session in self._in_turns(found):
                if detail["ended"] == limit:
                    break
                if self._fits(session, which):
                    kill(self._bayeux, session, who)
                    detail["ended"] += 1
        await self._kept()
        return shapes.Endings(len(found), entries, detail["ended"], False)

    async def hold(self, key: str, reason: str, until: int | None, who: str) -> shapes.Session:
        with change(self._audit, who, "session.hold", key, reason=reason, until=until):
            session = self._find(key)
            if until is not None and until <= self._bayeux.node.now_ms():
                raise OperationFailed(ILLEGAL, "until: that is over already")
            self._bayeux.hold_back(session, reason, who, until)
        await self._kept()
        return await self._show(session)

    async def resume(self, key: str, who: str) -> shapes.Session:
        with change(self._audit, who, "session.resume", key):
            session = self._find(key)
            self._bayeux.resume(session)
        await self._kept()
        return await self._show(session)

    async def clear(self, key: str, who: str) -> int:
        with change(self._audit, who, "session.clear", key) as detail:
            detail["discarded"] = discarded = self._bayeux.clear(self._find(key))
        await self._kept()
        return discarded

    async def held_channels(self) -> list[shapes.HeldChannel]:
        return [
            self._held_channel(channel, held)
            for channel, held in sorted(self._bayeux.guard.held.items())
        ]

    def _held_channel(self, channel: str, held: Held) -> shapes.HeldChannel:
        retrial = self._bayeux.guard.retrials[channel]
        next_attempt = None if retrial.is_under_way else wall_ms(self._bayeux, retrial.due)
        return shapes.HeldChannel(channel, held.reason, held.since, retrial.failures, next_attempt)

    async def release(self, channel: str, who: str) -> None:
        with change(self._audit, who, "channel.release", channel):
            if not self._bayeux.release_channel(channel):
                raise OperationFailed(UNKNOWN_CHANNEL, f"{channel} is not held back")
        await self._kept()

    # Commands and the audit

    async def command(self, command: Command, who: str) -> Result:
        await self._patience.entries(command)
        self._wake()
        registry = self._registry()
        if not command.changes:
            return run(command, registry, who)
        target = f"{command.target.absolute(registry.node_id)}?{command.name}"
        with change(self._audit, who, "command", target, argument=command.argument):
            result = run(command, registry, who)
        await self._kept()
        return result

    async def audit(self, cursor: str | None, limit: int) -> shapes.Page[shapes.AuditEntry]:
        check_cursor(_CURSOR, cursor)
        with asking():
            entries, following = await self._audit.read(cursor, limit)
        return shapes.Page([shapes.AuditEntry(**entry._asdict()) for entry in entries], following)

    # Helpers

    async def _matching(self, which: SessionFilter) -> AsyncIterator[list[Session]]:
        """The sessions that are meant, in parts; others may go on between them."""
        sessions = iter(list(self._bayeux.sessions))
        while stretch := list(islice(sessions, _STRETCH)):
            self._wake()
            yield [session for session in stretch if self._fits(session, which)]
            await asyncio.sleep(0)

    def _fits(self, session: Session, which: SessionFilter) -> bool:
        return not session.is_gone and _is_meant(self._bayeux, session, which)

    async def _in_turns(self, sessions: Iterable[Session]) -> AsyncIterator[Session]:
        """One after the other, as long as what they leave can be written down."""
        for session in sessions:
            if self._bayeux.exits.is_crowded:
                await self._kept()
                if self._bayeux.exits.is_crowded:
                    return
            self._wake()
            yield session
            if self._bayeux.is_turn_over():
                await asyncio.sleep(0)

    async def _kept(self) -> None:
        """Wait until the store has what was changed: an answer promises that it lasts.

        While the store is away the change is in effect, and is written down on its return.
        """
        keeper, kept = self._bayeux.hub.keeper, asyncio.Event()
        if keeper.is_available:
            keeper.after(kept.set)
            with suppress(TimeoutError):
                await asyncio.wait_for(kept.wait(), _PATIENCE_S)

    def _find(self, key: str) -> Session:
        self._wake()
        session = find(self._bayeux, key)
        if session is None:
            raise OperationFailed(UNKNOWN_SESSION, f"there is no session {key}")
        return session

    async def _show(self, session: Session) -> shapes.Session:
        dead, last = 0, None
        try:
            dead, last = await self._letters_of(session.key)
        except StoreUnavailable as error:
            # What has been done has been done, and most that is known is known here.
            log.warning("dead letters of session %s are not known: %s", session.key, error)
        self._wake()
        return showing.whole_session(self._bayeux, session, dead, last)

    async def _letters_of(self, key: str) -> tuple[int, DeadLetter | None]:
        """How many there are, and the last one."""
        which = LetterFilter(receiver=key)
        page = await self._search.query(which, None, 1)
        return await self._search.count(which), next(iter(page.letters), None)


def _is_meant(bayeux: Bayeux, session: Session, which: SessionFilter) -> bool:
    """Whether all conditions hold, the cheap ones first."""
    return (
        session.key.startswith(which.prefix)
        and which.state in (None, showing.state_of(session))
        and which.held in (None, hold_of(session) is not None)
        and which.unconnected in (None, bayeux.places.is_unconnected(session))
        and (which.channel is None or which.channel in session.subscriptions)
        and (which.begun_before is None or created_ms(session) < which.begun_before)
        and (which.seen_before is None or last_seen_ms(bayeux, session) < which.seen_before)
    )


if TYPE_CHECKING:
    _operations: type[Operations] = Live
