"""`/service/topics`: clients ask about topics and erase them, within their rights."""

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from holdfast.bayeux.limits.budgets import Budgets
from holdfast.bayeux.rights import Rights
from holdfast.bayeux.services.history_search import MOST_BYTES, HistorySearch
from holdfast.bayeux.services.topic_status import NamePage, TopicStatuses, event_of
from holdfast.bayeux.sessions.topic_life import NOT_EVERYWHERE, TopicLife
from holdfast.bayeux.state.backlog import Backlog
from holdfast.bayeux.state.calls import Answer, Asker, Asking, Calls
from holdfast.bayeux.state.service_channels import FEW, ILLEGAL, CallInvalid, ServiceCall, limit_of
from holdfast.bayeux.wire.operation import Operation
from holdfast.delivery.basics.channels import Channel, Channels, Kind
from holdfast.delivery.basics.error_codes import SHARD_UNREACHABLE
from holdfast.delivery.basics.json_text import part, whole
from holdfast.delivery.basics.node import Node
from holdfast.delivery.routing.filter_language import FilterInvalid
from holdfast.delivery.routing.histories import Histories
from holdfast.delivery.routing.selections import Filter
from holdfast.delivery.topics.configured import Topics

TOPICS: Final = "/service/topics"
UNKNOWN: Final = "user.oid.unknown"
# What a home is asked for.
TOPIC_CALL: Final = "topics"
# How many bytes of messages one of several homes answers with, unless a single one has more.
_MOST_OF_HOME: Final = 192 * 1024
_AWAY: Final = "a worker that decides about such a channel cannot be reached"

# Each action with its options.
ACTIONS: Final[Mapping[str, frozenset[str]]] = {
    "state": frozenset(),
    "list": frozenset(("after", "limit")),
    "get": frozenset(("filter", "history", "limit")),
    "erase": frozenset(("after", "limit", "forceDestroy", "history")),
}

Options = Mapping[str, Any]
# Work over several turns. Its result is the data of the answer.
Steps = Generator[None, None, Answer]


class TopicService:
    """Answers calls of `/service/topics`: `{<action>: <channel or pattern>}`, with options.

    The home of a channel knows its topic and has its history.
    """

    def __init__(
        self,
        life: TopicLife,
        statuses: TopicStatuses,
        *,
        calls: Calls,
        backlog: Backlog,
        channels: Channels,
        topics: Topics,
        histories: Histories,
        node: Node,
        rights: Rights,
        budgets: Budgets,
    ) -> None:
        self._life = life
        self._statuses = statuses
        self._calls = calls
        self._backlog = backlog
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
        # What homes do in several turns.
        self._at_home: dict[str, Callable[[Asking, float], Steps]] = {
            "state": self._status,
            "list": self._statuses_of,
            "get": self._messages_of,
            "empty": self._emptied,
        }
        calls.handle(TOPIC_CALL, self._serve_others)

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

    # What clients ask

    def _show(self, call: ServiceCall, channel: Channel, _: Options) -> None:
        self._check_reading(call, channel)

        def shown(answers: Sequence[Answer]) -> None:
            status = answers[0]["status"]
            if status is None:
                call.fail(CallInvalid(UNKNOWN, f"{channel.name} is not a topic").to_json())
            else:
                call.answer(status)

        self._ask(call, channel, {"state": channel.name}, shown)

    def _list(self, call: ServiceCall, pattern: Channel, given: Options) -> None:
        self._check_reading(call, pattern)

        def listed(answers: Sequence[Answer]) -> None:
            found, after = _page(limit_of(given), answers)
            self._charge(call, len(found))
            call.answer({"topics": found, "next": after})

        self._ask(call, pattern, _listing(pattern, given), listed)

    def _get(self, call: ServiceCall, pattern: Channel, given: Options) -> None:
        # In each turn, because the client may have lost the right.
        self._check_reading(call, pattern)
        self._rights.check_rules(Operation.HISTORY, call.session, pattern)
        limit = limit_of(given)
        # For its errors.
        filter_of(given)
        asked = {
            "get": pattern.name,
            "count": entries_of(given, 1),
            "limit": limit,
            "filter": given.get("filter"),
        }

        def found(answers: Sequence[Answer]) -> None:
            self._charge(call, sum(answer["looked"] for answer in answers))
            call.answer(_joined(limit, answers))

        self._ask(call, pattern, asked, found)

    def _erase(self, call: ServiceCall, pattern: Channel, given: Options) -> None:
        is_forced = given.get("forceDestroy", False)
        if type(is_forced) is not bool:
            raise CallInvalid(ILLEGAL, "forceDestroy must be true or false")
        if not self._rights.are_open:
            self._rights.check_erase(call.session, pattern, call.message)
        if "history" in given:
            self._empty(call, pattern, given)
        elif self._calls.others:
            self._erase_everywhere(call, pattern, given, is_forced=is_forced)
        else:
            asked = _listing(pattern, given)
            answer = call.carry_out(partial(self._erase_here, call, asked, is_forced=is_forced))
            # The answer promises that the erasure is stored.
            call.is_kept = self._life.when_kept(partial(call.answer, answer))

    def _erase_here(self, call: ServiceCall, asked: Asking, *, is_forced: bool) -> Steps:
        found = yield from self._statuses_of(asked, call.now)
        names = [each["channel"] for each in found["topics"]]
        self._charge(call, len(names))
        # An erasure completes even if its session ends before.
        ended: list[bool] = []
        now = call.exchange.now
        self._life.erase_all(names, is_forced=is_forced, now=now, done=ended.append)
        while not ended:
            yield
        return {"erased": names, "next": found["next"]}

    def _erase_everywhere(
        self, call: ServiceCall, pattern: Channel, given: Options, *, is_forced: bool
    ) -> None:
        """First list the topics, so that no more are erased than the client wants."""

        def listed(answers: Sequence[Answer]) -> None:
            found, after = _page(limit_of(given), answers)
            self._charge(call, len(found))
            self._erase_found(call, [each["channel"] for each in found], after, is_forced=is_forced)

        asked = dict.fromkeys(self._calls.owners_of(pattern.name), _listing(pattern, given))
        self._gather(call, asked, listed)

    def _erase_found(
        self, call: ServiceCall, names: Sequence[str], after: str | None, *, is_forced: bool
    ) -> None:
        by_home: dict[int | None, list[str]] = {}
        for name in names:
            by_home.setdefault(self._calls.owner_of(name), []).append(name)

        def erased(answers: Sequence[Answer]) -> None:
            if all(answer["is_everywhere"] for answer in answers):
                call.answer({"erased": [*names], "next": after})
            else:
                call.fail({"code": SHARD_UNREACHABLE.text, "message": NOT_EVERYWHERE})

        asked = {home: {"erase": some, "is_forced": is_forced} for home, some in by_home.items()}
        self._gather(call, asked, erased)

    def _empty(self, call: ServiceCall, pattern: Channel, given: Options) -> None:
        """Remove histories, but not topics."""
        if entries_of(given, 0) >= 0:
            raise CallInvalid(ILLEGAL, "history.numEntries must be -1: everything")

        def emptied(answers: Sequence[Answer]) -> None:
            names = sorted(name for answer in answers for name in answer["emptied"])
            self._charge(call, len(names))
            messages = sum(answer["messages"] for answer in answers)
            call.answer({"emptied": names, "messages": messages})

        self._ask(call, pattern, {"empty": pattern.name, "limit": limit_of(given)}, emptied)

    def _charge(self, call: ServiceCall, items: int) -> None:
        self._budgets.spend_answer(call.session, items, call.exchange.now)

    def _ask(
        self,
        call: ServiceCall,
        pattern: Channel,
        asked: Asking,
        heard_all: Callable[[Sequence[Answer]], None],
    ) -> None:
        """Let the homes do it, and go on with their answers. Without one of them the call fails.

        If all is here, the client's next message waits until then.
        """
        owners = self._calls.owners_of(pattern.name)
        if all(owner is None for owner in owners):
            heard_all([call.carry_out(partial(self._steps, asked, call.now))])
        else:
            asked = {**asked, "bytes": _MOST_OF_HOME}
            self._gather(call, dict.fromkeys(owners, asked), heard_all)

    def _gather(
        self,
        call: ServiceCall,
        asked: Mapping[int | None, Asking],
        heard_all: Callable[[Sequence[Answer]], None],
    ) -> None:
        def heard(answers: Sequence[Answer] | None) -> None:
            if answers is None:
                call.fail({"code": SHARD_UNREACHABLE.text, "message": _AWAY})
            else:
                heard_all(answers)

        elsewhere = self._topics.elsewhere
        for owner in asked:
            if owner is not None and elsewhere is not None:
                # Its answer counts what this client has done before.
                elsewhere.hurry(owner)
        self._calls.gather(TOPIC_CALL, asked, heard, now=call.now)

    # What a home does

    def _serve_others(self, asked: Asking, asker: Asker, now: float) -> None:
        """Do what another shard asks for, or this one together with others."""
        if "erase" in asked:
            self._erase_all(asked, asker, now)
            return
        steps = self._steps(asked, now)

        def go_on(_: float) -> bool:
            try:
                next(steps)
            except StopIteration as end:
                # Steps that have failed have no answer.
                asker.answer(end.value or {})
                return False
            return True

        self._backlog.begin(go_on, now)

    def _erase_all(self, asked: Asking, asker: Asker, now: float) -> None:
        def erased(is_everywhere: bool) -> None:
            # The answer promises that the erasure is stored.
            self._life.when_kept(partial(asker.answer, {"is_everywhere": is_everywhere}))

        names, is_forced = asked["erase"], asked["is_forced"]
        self._life.erase_all(names, is_forced=is_forced, now=now, done=erased)

    def _steps(self, asked: Asking, now: float) -> Steps:
        [action] = asked.keys() & self._at_home.keys()
        return self._at_home[action](asked, now)

    def _status(self, asked: Asking, _: float) -> Steps:
        topic = self._topics.get(asked["state"])
        yield from ()
        return {"status": None if topic is None else self._statuses.of(topic).to_json()}

    def _statuses_of(self, asked: Asking, _: float) -> Steps:
        pattern = self._channels.named(asked["list"])
        page = NamePage(self._topics.names, pattern, asked["after"], asked["limit"])
        found: list[Answer] = []
        for names in page:
            found += [each.to_json() for each in self._statuses.of_all(names)]
            yield
        return {"topics": found, "next": page.next}

    def _messages_of(self, asked: Asking, now: float) -> Steps:
        text, node = asked["filter"], self._node
        search = HistorySearch(
            self._histories,
            self._channels.named(asked["get"]),
            count=asked["count"],
            limit=asked["limit"],
            filter=None if text is None else Filter(text),
            most_bytes=asked.get("bytes", MOST_BYTES),
            now_ms=node.now_ms(),
        )
        looked, between = 0, FEW if text is None else 1
        while search.go_on(now):
            looked += 1
            if looked % between == 0:
                yield
        found: list[Answer] = []
        for start in range(0, len(search.messages), FEW):
            # Encoded here: they are deep, and a thousand in the reply would take a long time.
            found += [
                {
                    "channel": message.channel,
                    "id": message.id,
                    "event": part(event_of(node, message)),
                }
                for message in search.messages[start : start + FEW]
            ]
            yield
        return {"messages": found, "complete": search.is_complete, "looked": search.asked}

    def _emptied(self, asked: Asking, _: float) -> Steps:
        covered, _looked = self._histories.covered_by(self._channels.named(asked["empty"]))
        names = [each.channel for each in covered[: asked["limit"]]]
        messages = 0
        for name in names:
            messages += self._histories.erase(name)
            yield
        return {"emptied": names, "messages": messages}


def _listing(pattern: Channel, given: Options) -> Asking:
    return {"list": pattern.name, "after": after_of(given), "limit": limit_of(given)}


def _page(limit: int, answers: Sequence[Answer]) -> tuple[list[Answer], str | None]:
    """Return one page, and the name to continue after if there may be more."""
    ends = [answer["next"] for answer in answers if answer["next"] is not None]
    end = min(ends, default=None)
    found = [each for answer in answers for each in answer["topics"]]
    if len(answers) == 1:
        return found, end
    # Behind the end of a page, a shard may have more.
    found = [each for each in found if end is None or each["channel"] <= end]
    found.sort(key=lambda each: str(each["channel"]))
    if len(found) > limit:
        return found[:limit], found[limit - 1]["channel"]
    return found, end


def _joined(limit: int, answers: Sequence[Answer]) -> Answer:
    """Return one answer: by channel, the newest first."""
    found = [each for answer in answers for each in answer["messages"]]
    if len(answers) > 1:
        found.sort(key=lambda each: (each["channel"], -each["id"]))
    is_complete = len(found) <= limit and all(answer["complete"] for answer in answers)
    return {"messages": [part(each["event"]) for each in found[:limit]], "complete": is_complete}


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
