"""The server itself: its figures and channels, commands and the audit."""

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_args

from pydantic import Field

from holdfast.bayeux.commands.grammar import understand
from holdfast.bayeux.commands.running import CommandReply, Commands
from holdfast.store.audit import AuditEntry
from holdfast.store.format.operator_input import Channel
from holdfast.store.letters.search import LetterSearch
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.pipeline_results import PipelineResults
from holdfast.web.admin import system_views as views
from holdfast.web.admin.changes import RunningServer, change, check_cursor
from holdfast.web.admin.faults import UNKNOWN, RequestFailed, illegal
from holdfast.web.admin.fields import (
    CommandText,
    Cursor,
    EntryLimit,
    HoldEnd,
    Limit,
    Prefix,
    ResultName,
    Text,
)
from holdfast.web.admin.figures import LiveFigures
from holdfast.web.admin.now import LiveNow
from holdfast.web.admin.now_tables import NowTable, tables
from holdfast.web.admin.now_views import Now, ShardNow
from holdfast.web.admin.route import route
from holdfast.web.admin.session_views import (
    ChangedChannel,
    HeldChannel,
    ReleasedChannel,
    held_channel,
)
from holdfast.web.admin.shards import ShardViews
from holdfast.web.admin.sorting import Stretches, sortable, stretches_of
from holdfast.web.admin.tokens import Role
from holdfast.web.admin.views import Page, TableColumn, first_names, view_of

# Redis refuses to list what is before 0-0.
_CURSOR = re.compile(r"(?!0+-0+$)[0-9]{1,19}-[0-9]{1,19}")


class SystemResource:
    """Answers requests about the server; every change is audited."""

    def __init__(
        self,
        server: RunningServer,
        *,
        figures: LiveFigures,
        now: LiveNow,
        shards: ShardViews,
        letters: LetterSearch,
        results: PipelineResults,
    ) -> None:
        self._server = server
        state = server.life.state
        self._hub, self._guard, self._node = state.hub, state.guard, state.node
        self._channel_holds = server.life.channel_holds
        self._audit = server.audit
        self._figures, self._now, self._shards = figures, now, shards
        self._letters, self._results = letters, results
        self._commands = Commands(server.life, server.clock)

    @route("GET", "/about")
    async def about(self, who: str) -> views.About:
        """Describe this server and the caller's role."""
        return views.About(
            role=Role.of(who).title,
            who=who,
            node=self._node.name,
            version=self._server.version,
            # Resources are made for the first request only.
            started=self._figures.started,
            now=self._node.now_ms(),
            journal=self._server.keeps_journal,
        )

    @route("GET", "/figures")
    async def figures(self) -> views.Figures:
        """Show the live figures."""
        return await self._figures.read()

    @route("GET", "/now")
    async def now(self, limit: EntryLimit = 10) -> Now:
        """Show what is stuck now, since when, and for whom; each list has so many items at most."""
        return await self._now.read(limit)

    @route("GET", "/now/tables")
    async def now_tables(self) -> list[NowTable]:
        """Show how people see these lists: their titles, and their columns with a meaning each."""
        return tables(has_hosts=bool(self._shards.hosts()))

    @route("GET", "/shards")
    async def shards(self) -> list[ShardNow]:
        """Show the worker of each shard."""
        return self._shards.read()

    @route("GET", "/pipeline/{result}")
    async def pipeline_result(self, result: ResultName) -> views.PipelineResult:
        """Show the latest result of the pipeline with this name."""
        found = await self._results.get(result)
        if found is None:
            text = f"the pipeline has not written {result} yet: run holdfast pipeline ingest"
            raise RequestFailed(UNKNOWN, text)
        return _result(found)

    @route("GET", "/pipeline")
    async def pipeline_results(self) -> list[views.PipelineResult]:
        """Show all results that the pipeline has written."""
        return [_result(found) for found in await self._results.known(get_args(ResultName))]

    # Channels

    async def _every_channel(self, prefix: str) -> Stretches[views.ChannelSummary]:
        async for stretch in stretches_of(*await self._channels(prefix)):
            yield stretch

    @route("GET", "/channels")
    @sortable("name", _every_channel)
    async def channels(
        self, prefix: Prefix = "", cursor: Cursor = None, limit: Limit = 100
    ) -> Page[views.ChannelSummary]:
        """List channels with subscribers, messages or dead letters, by name or sorted by a field.

        Patterns are listed with the subscribers to exactly them.
        """
        names, summary = await self._channels(prefix)
        found, after = first_names(names, cursor, limit)
        return Page([*map(summary, found)], after)

    async def _channels(
        self, prefix: str
    ) -> tuple[list[str], Callable[[str], views.ChannelSummary]]:
        """Return the names of channels and patterns, and what tells about one of them."""
        letters = await self._letters_by_channel()
        hub, held = self._hub, self._guard.held
        rates = None if hub.watch is None else hub.watch.rates
        sizes = dict(hub.routes.sizes())
        names = sizes.keys() | (rates or {}).keys() | held.keys() | (letters or {}).keys()

        def summary(name: str) -> views.ChannelSummary:
            rate = None if rates is None else round(rates.get(name, 0.0), 2)
            dead = None if letters is None else letters.get(name, 0)
            return views.ChannelSummary(name, sizes.get(name, 0), rate, name in held, dead)

        return [name for name in names if name.startswith(prefix)], summary

    async def _letters_by_channel(self) -> Mapping[str, int] | None:
        try:
            return await self._letters.by_channel()
        except StoreUnavailable:
            # All else is known without the store.
            return None

    @route("GET", "/held-channels")
    async def held_channels(self) -> list[HeldChannel]:
        """List held channels."""
        return [self._held_channel(channel) for channel in sorted(self._guard.held)]

    def _held_channel(self, channel: str) -> HeldChannel:
        return held_channel(self._guard, self._node, channel, self._server.clock())

    @route("PUT", "/held-channels")
    async def hold_channel(
        self, channel: Channel, reason: Text = "", until: HoldEnd = None, *, who: str
    ) -> ChangedChannel:
        """Hold back a channel until the given time, or until it is released."""
        audit = self._server.audit
        with change(audit, who, "channel.hold", channel, reason=reason, until=until):
            self._channel_holds.hold(channel, reason, who, until)
            # It may have ended by the time when the store has it.
            held = self._held_channel(channel)
        return view_of(ChangedChannel, held, unstored=not await self._server.kept())

    @route("DELETE", "/held-channels")
    async def release(self, channel: Channel, who: str) -> ReleasedChannel:
        """Release a held channel."""
        with change(self._server.audit, who, "channel.release", channel):
            if not self._channel_holds.release(channel, "operator", who):
                raise RequestFailed(UNKNOWN, f"{channel} is not held back")
        return ReleasedChannel(channel, not await self._server.kept())

    # Commands and the audit

    @route("GET", "/commands")
    async def question(self, command: CommandText, who: str) -> CommandReply:
        """Run a command of the administrative grammar that only reads."""
        understood = understand(command)
        if understood.changes:
            raise illegal("this command changes something: send it with POST")
        return self._commands.run(understood, who)

    @route("POST", "/commands")
    async def command(
        self,
        command: CommandText,
        value: Annotated[
            Text | None, Field(description="What to set, if the command does not say it.")
        ] = None,
        *,
        who: str,
    ) -> CommandReply:
        """Run a command of the administrative grammar."""
        understood = understand(command, value)
        if not understood.changes:
            return self._commands.run(understood, who)
        target = understood.absolute(self._node.name)
        async with self._server.change(who, "command", target, argument=understood.value):
            return self._commands.run(understood, who)

    @route("GET", "/audit")
    @sortable("id", lambda self: self._audit.all())
    async def audit(self, cursor: Cursor = None, limit: Limit = 100) -> Page[AuditEntry]:
        """List changes and who made them, the latest first or sorted by a field."""
        check_cursor(_CURSOR, cursor)
        return Page(*await self._audit.read(cursor, limit))


def _result(found: dict[str, Any]) -> views.PipelineResult:
    columns = [TableColumn(**each) for each in found.pop("columns")]
    return views.PipelineResult(**found, columns=columns)
