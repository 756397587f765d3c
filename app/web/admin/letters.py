"""The resource of dead letters and replays."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict

from holdfast.delivery.letters.dead import DeadLetter
from holdfast.store.format.operator_input import Fingerprint, GroupedBy, LetterId
from holdfast.store.letters.administration import Import, Letters
from holdfast.store.letters.filter import ALL_LETTERS, LetterFilter
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.remarks import Remark
from holdfast.store.replays.control import JobNotRunning, Replays
from holdfast.store.replays.parameters import USUAL_OPTIONS, ReplayOptions
from holdfast.web.admin import letter_views as views
from holdfast.web.admin.changes import RunningServer, change, check_cursor, check_sweep
from holdfast.web.admin.faults import CONFLICT, STORE_UNAVAILABLE, UNKNOWN, RequestFailed, illegal
from holdfast.web.admin.fields import (
    All,
    Assignee,
    By,
    Cursor,
    DryRun,
    Limit,
    PublishableOptions,
    ReplayId,
    Text,
)
from holdfast.web.admin.route import route
from holdfast.web.admin.sorting import Stretches, sortable
from holdfast.web.admin.views import Page

_CURSOR = re.compile(r"[0-9]{19}")
# Groups are sorted by size, so a cursor is a number of groups.
_PLACE = re.compile(r"[0-9]{1,9}")


class LetterResource:
    """Answers requests about dead letters; every change is audited."""

    def __init__(self, server: RunningServer, letters: Letters, replays: Replays) -> None:
        self._node, self._age_ms = server.life.state.node, server.letter_age_ms
        self._audit = server.audit
        self._letters = letters
        self._replays = replays
        # Replays that are starting, whether or not a request still waits for them.
        self._starting: set[asyncio.Task[views.Replay]] = set()

    async def _summaries(self, filter: LetterFilter) -> Stretches[views.LetterSummary]:
        async for letters, _ in self._letters.search.scan(filter):
            yield [*map(self._summary, letters)]

    @route("GET", "/dead-letters")
    @sortable("id", _summaries)
    async def letters(
        self, filter: LetterFilter, cursor: Cursor = None, limit: Limit = 100
    ) -> Page[views.LetterSummary]:
        """List dead letters, the latest first or sorted by a field."""
        check_cursor(_CURSOR, cursor)
        page = await self._letters.search.query(filter, cursor, limit)
        return Page([self._summary(each) for each in page.letters], page.cursor)

    def _summary(self, letter: DeadLetter) -> views.LetterSummary:
        return views.letter_summary(self._node, letter, self._age_ms)

    @route("GET", "/dead-letters/groups")
    async def groups(
        self,
        fingerprint: Fingerprint | None = None,
        cursor: Cursor = None,
        limit: Limit = 50,
        *,
        by: By = GroupedBy.CAUSE,
    ) -> views.Groups:
        """List groups of dead letters with the same cause, the largest first; or one group."""
        check_cursor(_PLACE, cursor)
        search, start = self._letters.search, int(cursor or 0)
        remarks: Sequence[Remark | None]
        if by is GroupedBy.CAUSE:
            found = await search.groups(fingerprint, limit, start=start)
            prints = [each.sample.fingerprint for each in found.groups]
            remarks = await self._letters.remarks.of(prints)
        elif fingerprint is None:
            found = await search.kinds(by, limit, start=start)
            remarks = [None] * len(found.groups)
        else:
            raise illegal("by: a fingerprint names one group by cause")
        items = [views.group(*each) for each in zip(found.groups, remarks, strict=True)]
        following = None if found.following is None else str(found.following)
        return views.Groups(items, following, found.total)

    @route("PUT", "/dead-letters/groups/{fingerprint}/remark")
    async def remark(
        self, fingerprint: Fingerprint, assignee: Assignee = "", note: Text = "", *, who: str
    ) -> Remark:
        """Set the remark on a group of dead letters: its assignee and a note."""
        given = {"assignee": assignee, "note": note}
        with change(self._audit, who, "dead.remark", fingerprint, **given):
            if not await self._letters.search.count(LetterFilter(fingerprint=fingerprint)):
                text = f"there is no dead letter with the fingerprint {fingerprint}"
                raise RequestFailed(UNKNOWN, text)
            return await self._letters.remarks.put(fingerprint, assignee, note, who)

    @route("GET", "/dead-letters/export")
    async def export(self, filter: LetterFilter, who: str) -> AsyncIterator[bytes]:
        """Export complete dead letters, one per line."""
        given = _given(filter)
        with change(self._audit, who, "dead.export", "", filter=given, exported=0) as detail:
            async for line in self._letters.export(filter):
                detail["exported"] += 1
                yield line

    @route("POST", "/dead-letters/import")
    async def import_(self, lines: AsyncIterator[bytes], who: str) -> Import:
        """Import exported dead letters; existing ones stay unchanged."""
        with change(self._audit, who, "dead.import", "") as detail:
            done = await self._letters.import_(lines)
            detail |= {each: count for each, count in asdict(done).items() if each != "refusals"}
        return done

    @route("POST", "/dead-letters/purge")
    async def purge(
        self,
        filter: LetterFilter = ALL_LETTERS,
        *,
        all: All = False,
        dry_run: DryRun,
        who: str,
    ) -> views.Purge:
        """Remove dead letters for good."""
        check_sweep(filter, all=all)
        if dry_run:
            return views.Purge(await self._letters.search.count(filter), 0, True)
        given = _given(filter)
        with change(self._audit, who, "dead.purge", "", filter=given, purged=0) as detail:

            def note(removed: int) -> None:
                detail["purged"] = removed

            purged = await self._letters.purge(filter, note)
        return views.Purge(purged, purged, False)

    @route("GET", "/dead-letters/{id}")
    async def letter(self, id: LetterId) -> views.Letter:
        """Show one dead letter with its content and history."""
        letter = await self._letters.search.get(id)
        if letter is None:
            raise RequestFailed(UNKNOWN, f"there is no dead letter {id}")
        return views.whole_letter(self._node, letter, self._age_ms)

    @route("GET", "/replays")
    async def replays(self) -> list[views.Replay]:
        """List replays, the latest first, at most 100."""
        return [views.replay(job) for job in await self._replays.latest()]

    @route("POST", "/replays")
    async def replay_start(
        self,
        filter: LetterFilter = ALL_LETTERS,
        options: PublishableOptions = USUAL_OPTIONS,
        *,
        all: All = False,
        dry_run: DryRun,
        who: str,
    ) -> views.Replay:
        """Replay dead letters; a dry run only counts, and has no id."""
        check_sweep(filter, all=all)
        check_edit(filter, options)
        if dry_run:
            return views.replay(await self._replays.plan(filter, options, who))
        # The replay must start completely even if the client closes the connection.
        starting = asyncio.create_task(self._start(filter, options, who))
        self._starting.add(starting)
        starting.add_done_callback(self._starting.discard)
        return await asyncio.shield(starting)

    async def _start(self, filter: LetterFilter, options: ReplayOptions, who: str) -> views.Replay:
        try:
            # `Replays` audits the beginning and the end.
            return views.replay(await self._replays.start(filter, options, who))
        except StoreUnavailable:
            self._audit.note(who, "replay.start", "", outcome=STORE_UNAVAILABLE)
            raise

    @route("GET", "/replays/{id}")
    async def replay(self, id: ReplayId) -> views.Replay:
        """Show the progress of a replay."""
        job = await self._replays.get(id)
        if job is None:
            raise _no_replay(id)
        return views.replay(job)

    @route("DELETE", "/replays/{id}")
    async def replay_cancel(self, id: ReplayId, who: str) -> views.Replay:
        """Cancel a replay; messages already sent stay sent."""
        with change(self._audit, who, "replay.cancel", id):
            try:
                job = await self._replays.cancel(id, who)
            except JobNotRunning:
                raise RequestFailed(CONFLICT, "this replay is over") from None
            if job is None:
                raise _no_replay(id)
        return views.replay(job)


def check_edit(filter: LetterFilter, options: ReplayOptions) -> None:
    """Refuse new data for more than one letter."""
    if options.edit is not None and len(filter.ids) != 1:
        raise illegal("edit: name exactly one letter in filter.ids")


def _no_replay(id: str) -> RequestFailed:
    return RequestFailed(UNKNOWN, f"there is no replay {id}")


def _given(filter: LetterFilter) -> dict[str, object]:
    """Return the given conditions for the audit; of single letters, only their number."""
    given = filter.model_dump(exclude_defaults=True)
    return {**given, "ids": len(filter.ids)} if filter.ids else given
