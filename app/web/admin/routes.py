"""All that the administration answers, as one table."""

from typing import Any

from app.bayeux.commands import Result, understand
from app.bayeux.grammar import Verb
from app.web.admin.address import API
from app.web.admin.faults import illegal
from app.web.admin.letter_routes import LETTER_ROUTES
from app.web.admin.openapi import describe
from app.web.admin.requests import (
    Asked,
    ChannelNamed,
    ChannelsAsked,
    CommandAsked,
    CommandWanted,
    HoldWanted,
    MessageNamed,
    Paged,
    QueueAsked,
    ResultNamed,
    SessionNamed,
    SessionsAsked,
    SessionsWanted,
)
from app.web.admin.route import Call, Route
from app.web.admin.shapes import (
    AuditEntry,
    Clearing,
    Endings,
    Entry,
    HeldChannel,
    Items,
    Page,
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


async def _end_sessions(call: Call[Asked, SessionsWanted]) -> Endings:
    wanted = call.body
    if wanted.is_sweeping:
        raise illegal("this filter means every session: all must say so")
    return await call.operations.end_sessions(
        wanted.filter.filter(), wanted.limit, dry_run=wanted.dry_run, who=call.who
    )


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
    Route(
        "POST", "/sessions/end", _OPERATOR, "End some sessions; their queues become dead letters.",
        _end_sessions, Endings, Asked, SessionsWanted,
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
    *LETTER_ROUTES,
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
