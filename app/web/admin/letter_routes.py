"""What the administration answers about dead letters and replays."""

from collections.abc import AsyncIterator

from app.web.admin.faults import illegal
from app.web.admin.requests import (
    Asked,
    GroupNamed,
    GroupsAsked,
    LetterNamed,
    LettersAsked,
    LettersMeant,
    LettersWanted,
    PurgeWanted,
    RemarkWanted,
    ReplayNamed,
    ReplayWanted,
)
from app.web.admin.route import Call, Lines, Route
from app.web.admin.shapes import (
    Groups,
    Import,
    Items,
    Letter,
    LetterSummary,
    Page,
    Purge,
    Remark,
    Replay,
)
from app.web.admin.tokens import Role

_READER, _OPERATOR = Role.READER, Role.OPERATOR


async def _letters(call: Call[LettersAsked, None]) -> Page[LetterSummary]:
    asked = call.params
    return await call.operations.letters(asked.filter(), asked.cursor, asked.limit)


async def _letter(call: Call[LetterNamed, None]) -> Letter:
    return await call.operations.letter(call.params.id)


async def _groups(call: Call[GroupsAsked, None]) -> Groups:
    asked = call.params
    return await call.operations.groups(asked.fingerprint, asked.cursor, asked.limit)


async def _remark(call: Call[GroupNamed, RemarkWanted]) -> Remark:
    wanted, fingerprint = call.body, call.params.fingerprint
    return await call.operations.remark(fingerprint, wanted.assignee, wanted.note, call.who)


async def _purge(call: Call[Asked, PurgeWanted]) -> Purge:
    _refuse_sweeping(call.body)
    letters, dry_run = call.body.letters(), call.body.dry_run
    return await call.operations.purge(letters, dry_run=dry_run, who=call.who)


async def _export(call: Call[LettersMeant, None]) -> AsyncIterator[bytes]:
    return call.operations.export(call.params.filter(), call.who)


async def _import(call: Call[Asked, AsyncIterator[bytes]]) -> Import:
    return await call.operations.import_(call.body, call.who)


async def _replay_start(call: Call[Asked, ReplayWanted]) -> Replay:
    _refuse_sweeping(call.body)
    wanted = call.body
    _refuse_copying(wanted)
    return await call.operations.replay_start(
        wanted.letters(), wanted.options.options(), dry_run=wanted.dry_run, who=call.who
    )


async def _replays(call: Call[Asked, None]) -> Items[Replay]:
    return Items(await call.operations.replays())


async def _replay(call: Call[ReplayNamed, None]) -> Replay:
    return await call.operations.replay(call.params.id)


async def _replay_cancel(call: Call[ReplayNamed, None]) -> Replay:
    return await call.operations.replay_cancel(call.params.id, call.who)


def _refuse_sweeping(wanted: LettersWanted) -> None:
    if wanted.is_sweeping:
        raise illegal("the filter is empty: say all: true if every dead letter is meant")


def _refuse_copying(wanted: ReplayWanted) -> None:
    if wanted.options.edit is not None and len(wanted.filter.ids) != 1:
        raise illegal("edit: name the one letter that is meant in filter.ids")


LETTER_ROUTES: tuple[Route, ...] = (
    Route(
        "GET", "/dead-letters", _READER, "Dead letters, the latest first.",
        _letters, Page[LetterSummary], LettersAsked,
    ),
    Route(
        "GET", "/dead-letters/groups", _READER, "Dead letters by what went wrong.",
        _groups, Groups, GroupsAsked,
    ),
    Route(
        "PUT", "/dead-letters/groups/{fingerprint}/remark", _OPERATOR,
        "Say who looks after dead letters that failed alike, and what is known of them.",
        _remark, Remark, GroupNamed, RemarkWanted,
    ),
    Route(
        "GET", "/dead-letters/export", _READER, "Whole dead letters, one in each line.",
        _export, Lines, LettersMeant,
    ),
    Route(
        "POST", "/dead-letters/import", _OPERATOR, "Keep dead letters that were exported.",
        _import, Import, Asked, Lines,
    ),
    Route(
        "POST", "/dead-letters/purge", _OPERATOR, "Remove dead letters for good.",
        _purge, Purge, Asked, PurgeWanted,
    ),
    Route(
        "GET", "/dead-letters/{id}", _READER, "One dead letter with content and history.",
        _letter, Letter, LetterNamed,
    ),
    Route("GET", "/replays", _READER, "Replays, the latest first.", _replays, Items[Replay]),
    Route(
        "POST", "/replays", _OPERATOR, "Deliver dead letters once more.",
        _replay_start, Replay, Asked, ReplayWanted,
    ),
    Route("GET", "/replays/{id}", _READER, "How far a replay is.", _replay, Replay, ReplayNamed),
    Route(
        "DELETE", "/replays/{id}", _OPERATOR, "End a replay; what was sent stays sent.",
        _replay_cancel, Replay, ReplayNamed,
    ),
)  # fmt: skip
