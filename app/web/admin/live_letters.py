"""Dead letters and replays, as the store has them."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import asdict

from app.delivery.dead_letters import State
from app.store.audit import Audit
from app.store.connection import StoreUnavailable
from app.store.letter_search import LetterFilter as StoredFilter
from app.store.letters import Letters
from app.store.replay_jobs import ReplayOptions as JobOptions
from app.store.replays import NotUnderWay, Replays
from app.web.admin import shapes, showing
from app.web.admin.changes import asking, change, check_cursor
from app.web.admin.operations import (
    CONFLICT,
    STORE_AWAY,
    UNKNOWN_GROUP,
    UNKNOWN_LETTER,
    UNKNOWN_REPLAY,
    LetterFilter,
    OperationFailed,
    ReplayOptions,
)

_CURSOR = re.compile(r"[0-9]{19}")
# Groups go by their size, so that a part of them begins at a number.
_PLACE = re.compile(r"[0-9]{1,9}")


class LiveLetters:
    """The part of `Operations` that needs no session."""

    def __init__(
        self, node: str, letters: Letters, age_ms: int, replays: Replays, audit: Audit
    ) -> None:
        self._node = node
        self._letters = letters
        self._age_ms = age_ms
        self._search = letters.search
        self._remarks = letters.remarks
        self._replays = replays
        self._audit = audit
        # Replays that are being begun, whether or not somebody still waits for that.
        self._starting: set[asyncio.Task[shapes.Replay]] = set()

    async def letters(
        self, which: LetterFilter, cursor: str | None, limit: int
    ) -> shapes.Page[shapes.LetterSummary]:
        check_cursor(_CURSOR, cursor)
        with asking():
            page = await self._search.query(_stored(which), cursor, limit)
        items = [showing.letter_summary(self._node, each, self._age_ms) for each in page.letters]
        return shapes.Page(items, page.cursor)

    async def letter(self, id: str) -> shapes.Letter:
        with asking():
            letter = await self._search.get(id)
        if letter is None:
            raise OperationFailed(UNKNOWN_LETTER, f"there is no dead letter {id}")
        return showing.whole_letter(self._node, letter, self._age_ms)

    async def groups(
        self, fingerprint: str | None, cursor: str | None, limit: int
    ) -> shapes.Groups:
        check_cursor(_PLACE, cursor)
        with asking():
            found = await self._letters.groups(fingerprint, limit, start=int(cursor or 0))
            said = await self._remarks.of([each.sample.fingerprint for each in found.groups])
        items = [showing.group(each, about) for each, about in zip(found.groups, said, strict=True)]
        following = None if found.following is None else str(found.following)
        return shapes.Groups(items, following, found.total)

    async def remark(self, fingerprint: str, assignee: str, note: str, who: str) -> shapes.Remark:
        given = {"assignee": assignee, "note": note}
        with change(self._audit, who, "dead.remark", fingerprint, **given):
            if not await self._search.count(StoredFilter(fingerprint=fingerprint)):
                text = f"there is no dead letter of fingerprint {fingerprint}"
                raise OperationFailed(UNKNOWN_GROUP, text)
            said = await self._remarks.put(fingerprint, assignee, note, who)
        return showing.remark(said)

    async def purge(self, which: LetterFilter, *, dry_run: bool, who: str) -> shapes.Purge:
        if dry_run:
            with asking():
                return shapes.Purge(await self._search.count(_stored(which)), 0, True)
        given = showing.conditions(which)
        with change(self._audit, who, "dead.purge", "", filter=given, purged=0) as detail:

            def note(removed: int) -> None:
                detail["purged"] = removed

            purged = await self._letters.purge(_stored(which), note)
        return shapes.Purge(purged, purged, False)

    async def export(self, which: LetterFilter, who: str) -> AsyncIterator[bytes]:
        given = showing.conditions(which)
        with change(self._audit, who, "dead.export", "", filter=given, exported=0) as detail:
            async for line in self._letters.export(_stored(which)):
                detail["exported"] += 1
                yield line

    async def import_(self, lines: AsyncIterator[bytes], who: str) -> shapes.Import:
        with change(self._audit, who, "dead.import", "") as detail:
            done = await self._letters.import_(lines)
            detail |= {
                "imported": done.imported,
                "repeated": done.repeated,
                "refused": done.refused,
            }
        refusals = [shapes.Refusal(line, text) for line, text in done.refusals]
        return shapes.Import(done.imported, done.repeated, done.refused, refusals)

    # Replays

    async def replay_start(
        self, which: LetterFilter, options: ReplayOptions, *, dry_run: bool, who: str
    ) -> shapes.Replay:
        stored = _stored(which)
        job = JobOptions(
            rate=options.rate,
            canary=options.canary,
            stop_ratio=options.stop_at,
            max_generation=options.max_replays,
            target=options.to,
            data=options.data,
        )
        if dry_run:
            with asking():
                return showing.replay(await self._replays.plan(stored, job, who))
        # Nobody would drive a replay that is half begun.
        starting = asyncio.create_task(self._start(stored, job, who))
        self._starting.add(starting)
        starting.add_done_callback(self._starting.discard)
        return await asyncio.shield(starting)

    async def _start(self, which: StoredFilter, options: JobOptions, who: str) -> shapes.Replay:
        try:
            # Its beginning and its end stand in the audit by themselves.
            return showing.replay(await self._replays.start(which, options, who))
        except StoreUnavailable as error:
            self._audit.note(who, "replay.start", "", outcome=STORE_AWAY)
            raise OperationFailed(STORE_AWAY, str(error)) from error

    async def replay(self, id: str) -> shapes.Replay:
        with asking():
            job = await self._replays.get(id)
        if job is None:
            raise OperationFailed(UNKNOWN_REPLAY, f"there is no replay {id}")
        return showing.replay(job)

    async def replays(self) -> list[shapes.Replay]:
        with asking():
            return [showing.replay(job) for job in await self._replays.latest()]

    async def replay_cancel(self, id: str, who: str) -> shapes.Replay:
        with change(self._audit, who, "replay.cancel", id):
            try:
                job = await self._replays.cancel(id, who)
            except NotUnderWay:
                raise OperationFailed(CONFLICT, "this replay is over") from None
            if job is None:
                raise OperationFailed(UNKNOWN_REPLAY, f"there is no replay {id}")
        return showing.replay(job)


def _stored(which: LetterFilter) -> StoredFilter:
    """The filter as the store has it."""
    given = asdict(which)
    given["state"] = None if which.state is None else State(which.state)
    return StoredFilter(**given)
