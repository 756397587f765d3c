"""`/service/topics`: clients ask about topics and erase them, within their rights."""

from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any, Final

from holdfast.bayeux.limits.budgets import Budgets
from holdfast.bayeux.rights import Rights
from holdfast.bayeux.services.history_search import HistorySearch
from holdfast.bayeux.services.topic_status import NamePage, TopicStatuses, event_of
from holdfast.bayeux.sessions.topic_life import TopicLife
from holdfast.bayeux.state.service_channels import FEW, ILLEGAL, CallInvalid, ServiceCall, limit_of
from holdfast.bayeux.wire.operation import Operation
from holdfast.delivery.basics.channels import Channel, Channels, Kind
from holdfast.delivery.basics.json_text import part, whole
from holdfast.delivery.basics.node import Node
from holdfast.delivery.routing.filter_language import FilterInvalid
from holdfast.delivery.routing.histories import Histories
from holdfast.delivery.routing.selections import Filter
from holdfast.delivery.topics.configured import Topics

TOPICS: Final = "/service/topics"
UNKNOWN: Final = "user.oid.unknown"

# Each action with its options.
ACTIONS: Final[Mapping[str, frozenset[str]]] = {
    "state": frozenset(),
    "list": frozenset(("after", "limit")),
    "get": frozenset(("filter", "history", "limit")),
    "erase": frozenset(("after", "limit", "forceDestroy", "history")),
}

Options = Mapping[str, Any]
# Work over several turns. Its result is the data of the answer.
Steps = Generator[None, None, dict[str, Any]]


class TopicService:
    """Answers calls of `/service/topics`: `{<action>: <channel or pattern>}`, with options."""

    def __init__(
        self,
        life: TopicLife,
        statuses: TopicStatuses,
        *,
        channels: Channels,
        topics: Topics,
        histories: Histories,
        node: Node,
        rights: Rights,
        budgets: Budgets,
    ) -> None:
        self._life = life
        self._statuses = statuses
        self._channels = channels
        self._topics = topics
        self._histories = histories
        self._node = node
        self._rights = rights
        self._budgets = budgets
        self._actions: dict[str, Callable[[ServiceCall, Channel, Options], None]] = {
            "state": self._show,
            "list": self._list,
            "get": self._get,
            "erase": self._erase,
        }

    def serve(self, call: ServiceCall) -> None:
        """Carry out the call and answer it. Raises `Refused` if the client lacks the right."""
        try:
            self._carry_out(call)
        except CallInvalid as invalid:
            call.fail(invalid.to_json())

    def _carry_out(self, call: ServiceCall) -> None:
        data = call.data
        given: Options = data if isinstance(data, Mapping) else {}
        asked = [name for name in ACTIONS if name in given]
        if len(asked) != 1:
            names = ", ".join(ACTIONS)
            raise CallInvalid(ILLEGAL, f"data must have exactly one of {names}")
        action = asked[0]
        known = ACTIONS[action]
        if given.keys() - known - {action}:
            raise CallInvalid(
                ILLEGAL, f"{action} has these options: {', '.join(sorted(known)) or 'none'}"
            )
        self._actions[action](call, self._channel(given[action]), given)

    def _channel(self, name: object) -> Channel:
        channel = self._channels.get(name) if isinstance(name, str) else None
        if channel is None or channel.kind is not Kind.BROADCAST:
            raise CallInvalid(
                ILLEGAL, "this is neither a channel nor a pattern that clients can publish on"
            )
        return channel

    def _check_reading(self, call: ServiceCall, channel: Channel) -> None:
        """Refuse a channel that the client could not subscribe to."""
        rights = self._rights
        rights.check_system(call.session, channel, call.message)
        if not rights.are_open:
            rights.check_subscribe(call.session, channel, call.message)

    def _show(self, call: ServiceCall, channel: Channel, _: Options) -> None:
        self._check_reading(call, channel)
        topic = self._topics.get(channel.name)
        if topic is None:
            raise CallInvalid(UNKNOWN, f"{channel.name} is not a topic")
        call.answer(self._statuses.of(topic).to_json())

    def _list(self, call: ServiceCall, pattern: Channel, given: Options) -> None:
        self._check_reading(call, pattern)
        page = self._page(pattern, given)
        call.answer(call.carry_out(partial(self._listed, call, page)))

    def _listed(self, call: ServiceCall, page: NamePage) -> Steps:
        topics: list[dict[str, Any]] = []
        for names in page:
            self._charge(call, len(names))
            topics += [each.to_json() for each in self._statuses.of_all(names)]
            yield
        return {"topics": topics, "next": page.next}

    def _charge(self, call: ServiceCall, items: int) -> None:
        self._budgets.spend_answer(call.session, items, call.exchange.now)

    def _get(self, call: ServiceCall, pattern: Channel, given: Options) -> None:
        # In each turn, because the client may have lost the right.
        self._check_reading(call, pattern)
        self._rights.check_rules(Operation.HISTORY, call.session, pattern)
        count, limit, filter = entries_of(given, 1), limit_of(given), filter_of(given)
        got = partial(self._got, call, pattern, count=count, limit=limit, filter=filter)
        call.answer(call.carry_out(got))

    def _got(
        self, call: ServiceCall, pattern: Channel, *, count: int, limit: int, filter: Filter | None
    ) -> Steps:
        now_ms = self._node.now_ms()
        search = HistorySearch(
            self._histories, pattern, count=count, limit=limit, filter=filter, now_ms=now_ms
        )
        self._charge(call, search.asked)
        looked, between = 0, FEW if filter is None else 1
        while search.go_on(call.now):
            looked += 1
            if looked % between == 0:
                yield
        events: list[Any] = []
        node, found = self._node, search.messages
        for start in range(0, len(found), FEW):
            # Encoded here: they are deep, and a thousand in the reply would take a long time.
            events += [part(event_of(node, each)) for each in found[start : start + FEW]]
            yield
        return {"messages": events, "complete": search.is_complete}

    def _erase(self, call: ServiceCall, pattern: Channel, given: Options) -> None:
        is_forced = given.get("forceDestroy", False)
        if type(is_forced) is not bool:
            raise CallInvalid(ILLEGAL, "forceDestroy must be true or false")
        if not self._rights.are_open:
            self._rights.check_erase(call.session, pattern, call.message)
        if "history" in given:
            self._empty(call, pattern, given)
            return
        self._erase_topics(call, pattern, given, is_forced=is_forced)

    def _erase_topics(
        self, call: ServiceCall, pattern: Channel, given: Options, *, is_forced: bool
    ) -> None:
        page = self._page(pattern, given)
        answer = call.carry_out(partial(self._erased, call, page, is_forced=is_forced))
        # The answer promises that the erasure is stored.
        call.is_kept = self._life.when_kept(partial(call.answer, answer))

    def _erased(self, call: ServiceCall, page: NamePage, *, is_forced: bool) -> Steps:
        erased: list[str] = []
        for names in page:
            self._charge(call, len(names))
            erased += names
            yield
        # An erasure completes even if its session ends before.
        ended: list[bool] = []
        now = call.exchange.now
        self._life.erase_all(erased, is_forced=is_forced, now=now, done=ended.append)
        while not ended:
            yield
        return {"erased": erased, "next": page.next}

    def _empty(self, call: ServiceCall, pattern: Channel, given: Options) -> None:
        """Remove histories, but not topics."""
        self._check_everything(given)
        call.answer(call.carry_out(partial(self._emptied, call, pattern, limit_of(given))))

    def _check_everything(self, given: Options) -> None:
        if entries_of(given, 0) >= 0:
            raise CallInvalid(ILLEGAL, "history.numEntries must be -1: everything")

    def _emptied(self, call: ServiceCall, pattern: Channel, limit: int) -> Steps:
        covered, _ = self._histories.covered_by(pattern)
        names = [each.channel for each in covered[:limit]]
        self._charge(call, len(names))
        messages = 0
        for name in names:
            messages += self._histories.erase(name)
            yield
        return {"emptied": names, "messages": messages}

    def _page(self, pattern: Channel, given: Options) -> NamePage:
        return NamePage(self._topics.names, pattern, after_of(given), limit_of(given))


def after_of(given: Options) -> str:
    """Return the name to continue after, or an empty string. Raises `CallInvalid`."""
    after = given.get("after") or ""
    if not isinstance(after, str):
        raise CallInvalid(ILLEGAL, "after must be the name of a topic")
    return after


def filter_of(given: Options) -> Filter | None:
    """Return the filter of a call. Raises `CallInvalid`."""
    text = given.get("filter")
    if not isinstance(text, str | None):
        raise CallInvalid(ILLEGAL, "filter must be a text")
    try:
        return None if text is None else Filter(text)
    except FilterInvalid as invalid:
        raise CallInvalid(ILLEGAL, f"filter: {invalid}") from invalid


def entries_of(given: Options, usual: int) -> int:
    """Return how many messages to return from each history. A negative number means all."""
    history = given.get("history")
    if history is None:
        return usual
    if not isinstance(history, Mapping) or history.keys() != {"numEntries"}:
        raise CallInvalid(ILLEGAL, "history must be an object with numEntries")
    count = whole(history["numEntries"])
    if count is None or count < -1:
        raise CallInvalid(ILLEGAL, "history.numEntries must be a number from -1")
    return count
