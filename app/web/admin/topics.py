"""The resource of topics: their states and what keeps them, and erasing them."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated

from pydantic import Field

from holdfast.bayeux.services.history_search import HistorySearch
from holdfast.bayeux.services.topic_status import TopicStatuses, page_of
from holdfast.bayeux.sessions.topic_life import NOT_EVERYWHERE
from holdfast.bayeux.state.backlog import SerialWork
from holdfast.delivery.basics.error_codes import SHARD_UNREACHABLE
from holdfast.delivery.routing.filter_language import FilterInvalid
from holdfast.delivery.routing.selections import Filter
from holdfast.delivery.topics.configured import Topic
from holdfast.delivery.topics.states import TopicState
from holdfast.store.format.operator_input import Channel
from holdfast.web.admin import topic_views as views
from holdfast.web.admin.changes import RunningServer
from holdfast.web.admin.faults import UNKNOWN, RequestFailed, illegal
from holdfast.web.admin.fields import Cursor, EntryLimit, FilterText, Limit, Prefix
from holdfast.web.admin.message_views import KeptMessage, kept_message
from holdfast.web.admin.route import route
from holdfast.web.admin.sorting import Stretches, sortable, stretches_of
from holdfast.web.admin.views import Page, view_of

Force = Annotated[bool, Field(description="Discard messages that wait in queues.")]


class TopicResource:
    """Answers requests about topics; every change is audited."""

    def __init__(self, server: RunningServer) -> None:
        state = server.life.state
        self._server = server
        self._topics, self._channels = state.topics, state.channels
        self._histories, self._node = state.hub.histories, state.node
        self._backlog = state.backlog
        self._statuses = TopicStatuses(state.topics, state.rules, state.work, state.routes)

    async def _all(self, prefix: str) -> Stretches[views.Topic]:
        names = [name for name, is_there in self._topics.names.beginning(prefix, "") if is_there]
        async for stretch in stretches_of(names, str):
            yield self._views(stretch)

    def _views(self, names: Sequence[str]) -> list[views.Topic]:
        return [view_of(views.Topic, each) for each in self._statuses.of_all(names)]

    @route("GET", "/topics")
    @sortable("channel", _all)
    async def topics(
        self, prefix: Prefix = "", cursor: Cursor = None, limit: Limit = 100
    ) -> Page[views.Topic]:
        """List topics, by name or sorted by a field."""
        names = self._topics.names.beginning(prefix, cursor or "")
        found, after = page_of(names, limit)
        return Page(self._views(found), after)

    @route("GET", "/topic")
    async def topic(self, channel: Channel) -> views.Topic:
        """Show one topic."""
        return view_of(views.Topic, self._statuses.of(self._find(channel)))

    @route("GET", "/topic/history")
    async def topic_history(
        self, channel: Channel, limit: EntryLimit = 20, filter: FilterText = None
    ) -> list[KeptMessage]:
        """Show the newest messages that a channel keeps, the newest first.

        A filter tests at most 10,000 messages.
        """
        pattern = self._channels.get(channel)
        if pattern is None:
            raise illegal(f"{channel} is not a channel")
        try:
            compiled = None if filter is None else Filter(filter)
        except FilterInvalid as invalid:
            raise illegal(f"filter: {invalid}") from invalid
        found, done = _end()
        count = limit if compiled is None else -1
        now_ms = self._node.now_ms()
        search = HistorySearch(
            self._histories, pattern, count=count, limit=limit, filter=compiled, now_ms=now_ms
        )
        ended = partial(done, True)
        self._backlog.begin(SerialWork([search.go_on], ended).go_on, self._server.clock())
        await found
        return [kept_message(self._node, each) for each in search.messages]

    @route("DELETE", "/topic")
    async def erase_topic(self, channel: Channel, who: str, *, force: Force = False) -> None:
        """Erase a topic: its configuration, its history and the subscriptions to it."""
        async with self._server.change(who, "topic.erase", channel, force=force):
            life, now = self._server.life.topics, self._server.clock()
            erased, done = _end()
            life.erase(self._find(channel), is_forced=force, now=now, done=done)
            if not await erased:
                raise RequestFailed(SHARD_UNREACHABLE.text, NOT_EVERYWHERE)

    def _find(self, channel: str) -> Topic:
        topic = self._topics.get(channel)
        if topic is None or topic.state is TopicState.DEAD:
            raise RequestFailed(UNKNOWN, f"{channel} is not a topic")
        return topic


def _end() -> tuple[asyncio.Future[bool], Callable[[bool], None]]:
    """Return a future for the end of work over several turns, and the callback that ends it."""
    ended: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def end(is_whole: bool) -> None:
        if not ended.done():
            # Otherwise the caller no longer waits for it.
            ended.set_result(is_whole)

    return ended, end
