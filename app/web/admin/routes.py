"""All that the administration answers, as one table."""

from collections.abc import AsyncIterator
from typing import Any

from app.bayeux.commands import Result, understand
from app.bayeux.grammar import Verb
from app.web.admin.address import API
from app.web.admin.faults import illegal
from app.web.admin.openapi import describe
from app.web.admin.requests import (
    Asked,
    ChannelNamed,
    ChannelsAsked,
    CommandAsked,
    CommandWanted,
    GroupsAsked,
    HoldWanted,
    LetterNamed,
    LettersAsked,
    LettersMeant,
    LettersWanted,
    MessageNamed,
    Paged,
    PurgeWanted,
    QueueAsked,
    ReplayNamed,
    ReplayWanted,
    ResultNamed,
    SessionNamed,
    SessionsAsked,
)
from app.web.admin.route import Call, Lines, Route
from app.web.admin.shapes import (
    AuditEntry,
    Clearing,
    Entry,
    Groups,
    HeldChannel,
    Import,
    Items,
    Letter,
    LetterSummary,
    Page,
    Purge,
    Replay,
    Session,
    SessionSummary,
)
from app.web.admin.sights import About, ChannelSummary, Figures, PipelineResult, Trace
from app.web.admin.tokens import Role

_READER, _OPERATOR = Role.READER, Role.OPERATOR


async def _about(call: Call[Asked, None]) -> About:
    return await call.operations.about(call.who)


async def _figures(call: Call[Asked, None]) -> Figures:
    return await call.operations.figures()


async def _channels(call: Call[ChannelsAsked, None]) -> Page[ChannelSummary]:
    asked = call.params
    return await call.operations.channels(asked.prefix, asked.cursor, asked.limit)


async def _trace(call: Call[MessageNamed, None]) -> Trace:
    return await call.operations.trace(call.params.id, call.params.cursor)


async def _pipeline_result(call: Call[ResultNamed, None]) -> PipelineResult:
    return await call.operations.pipeline_result(call.params.result)


async def _sessions(call: Call[SessionsAsked, None]) -> Page[SessionSummary]:
    asked = call.params
    return await call.operations.sessions(asked.filter(), asked.cursor, asked.limit)


async def _session(call: Call[SessionNamed, None]) -> Session:
    return await call.operations.session(call.params.key)


async def _kill(call: Call[SessionNamed, None]) -> None:
    await call.operations.kill(call.params.key, call.who)


async def _peek(call: Call[QueueAsked, None]) -> Items[Entry]:
    return Items(await call.operations.peek(call.params.key, call.params.limit))


async def _clear(call: Call[SessionNamed, None]) -> Clearing:
    return Clearing(await call.operations.clear(call.params.key, call.who))


async def _hold(call: Call[SessionNamed, HoldWanted]) -> Session:
    wanted = call.body
    return await call.operations.hold(call.params.key, wanted.reason, wanted.until, call.who)


async def _resume(call: Call[SessionNamed, None]) -> Session:
    return await call.operations.resume(call.params.key, call.who)


async def _held_channels(call: Call[Asked, None]) -> Items[HeldChannel]:
    return Items(await call.operations.held_channels())


async def _release(call: Call[ChannelNamed, None]) -> None:
    await call.operations.release(call.params.channel, call.who)


async def _letters(call: Call[LettersAsked, None]) -> Page[LetterSummary]:
    asked = call.params
    return await call.operations.letters(asked.filter(), asked.cursor, asked.limit)


async def _letter(call: Call[LetterNamed, None]) -> Letter:
    return await call.operations.letter(call.params.id)


async def _groups(call: Call[GroupsAsked, None]) -> Groups:
    return await call.operations.groups(call.params.limit)


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
    return await call.operations.replay_start(
        wanted.letters(), wanted.options.options(), dry_run=wanted.dry_run, who=call.who
    )


async def _replays(call: Call[Asked, None]) -> Items[Replay]:
    return Items(await call.operations.replays())


async def _replay(call: Call[ReplayNamed, None]) -> Replay:
    return await call.operations.replay(call.params.id)


async def _replay_cancel(call: Call[ReplayNamed, None]) -> Replay:
    return await call.operations.replay_cancel(call.params.id, call.who)


async def _question(call: Call[CommandAsked, None]) -> Result:
    command = understand(call.params.command, verb=Verb.GET)
    if command.changes:
        raise illegal("this command changes something: POST it")
    return await call.operations.command(command, call.who)


async def _command(call: Call[Asked, CommandWanted]) -> Result:
    return await call.operations.command(understand(call.body.command, call.body.value), call.who)


async def _audit(call: Call[Paged, None]) -> Page[AuditEntry]:
    return await call.operations.audit(call.params.cursor, call.params.limit)


async def _description(_: Call[Asked, None]) -> dict[str, Any]:
    return describe(ROUTES, "/admin" + API)


def _refuse_sweeping(wanted: LettersWanted) -> None:
    if wanted.is_sweeping:
        raise illegal("the filter is empty: say all: true if every dead letter is meant")


_SESSION = "/sessions/{subject}/{number}"

ROUTES: tuple[Route, ...] = (
    Route("GET", "/about", _READER, "This server, and who asks.", _about, About),
    Route("GET", "/figures", _READER, "What the server is doing.", _figures, Figures),
    Route(
        "GET", "/channels", _READER, "Channels with subscribers or messages, by name.",
        _channels, Page[ChannelSummary], ChannelsAsked,
    ),
    Route(
        "GET", "/messages/{id}", _READER, "Where a message is, and what happened to it.",
        _trace, Trace, MessageNamed,
    ),
    Route(
        "GET", "/pipeline/{result}", _READER, "What the pipeline has found out last.",
        _pipeline_result, PipelineResult, ResultNamed,
    ),
    Route(
        "GET", "/sessions", _READER, "Sessions, by key.",
        _sessions, Page[SessionSummary], SessionsAsked,
    ),
    Route("GET", _SESSION, _READER, "One session.", _session, Session, SessionNamed),
    Route(
        "DELETE", _SESSION, _OPERATOR, "End a session; its queue becomes dead letters.",
        _kill, None, SessionNamed,
    ),
    Route(
        "GET", _SESSION + "/queue", _READER, "The first entries of a session's queue.",
        _peek, Items[Entry], QueueAsked,
    ),
    Route(
        "DELETE", _SESSION + "/queue", _OPERATOR, "Discard what is in a session's queue.",
        _clear, Clearing, SessionNamed,
    ),
    Route(
        "PUT", _SESSION + "/hold", _OPERATOR, "Hold a session's delivery back.",
        _hold, Session, SessionNamed, HoldWanted,
    ),
    Route(
        "DELETE", _SESSION + "/hold", _OPERATOR, "Let a session's delivery go on.",
        _resume, Session, SessionNamed,
    ),
    Route(
        "GET", "/held-channels", _READER, "Channels that the server holds back.",
        _held_channels, Items[HeldChannel],
    ),
    Route(
        "DELETE", "/held-channels", _OPERATOR, "Let a held channel's messages flow again.",
        _release, None, ChannelNamed,
    ),
    Route(
        "GET", "/dead-letters", _READER, "Dead letters, the latest first.",
        _letters, Page[LetterSummary], LettersAsked,
    ),
    Route(
        "GET", "/dead-letters/groups", _READER, "Dead letters by what went wrong.",
        _groups, Groups, GroupsAsked,
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
    Route(
        "GET", "/commands", _READER, "Ask something in the administrative grammar.",
        _question, Result, CommandAsked,
    ),
    Route(
        "POST", "/commands", _OPERATOR, "Run a command of the administrative grammar.",
        _command, Result, Asked, CommandWanted,
    ),
    Route(
        "GET", "/audit", _READER, "Changes and who made them, the latest first.",
        _audit, Page[AuditEntry], Paged,
    ),
    Route(
        "GET", "/openapi.json", _READER, "This description.",
        _description, dict[str, Any],
    ),
)  # fmt: skip
