"""`/service/topics` about what other shards have: each home answers and erases its own."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from orjson import loads

from holdfast.bayeux.services.far_topics import FarTopics
from holdfast.bayeux.services.history_search import HistorySearch
from holdfast.bayeux.services.topic_calls import (
    UNKNOWN,
    Options,
    TopicService,
    after_of,
    entries_of,
    filter_of,
)
from holdfast.bayeux.services.topic_status import NamePage, TopicStatuses, event_of
from holdfast.bayeux.sessions.topic_life import NOT_EVERYWHERE, TopicLife
from holdfast.bayeux.state.backlog import SerialWork
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.state.service_channels import CallInvalid, ServiceCall, limit_of
from holdfast.bayeux.wire.operation import Operation
from holdfast.delivery.basics.channels import Channel
from holdfast.delivery.basics.error_codes import SHARD_UNREACHABLE
from holdfast.delivery.basics.json_text import part, to_json
from holdfast.delivery.messages.shard_letter import ShardLetter
from holdfast.delivery.ports.homes import NO_ANSWER, HomesPort
from holdfast.delivery.routing.selections import Filter

# What the letter is called in the log.
TOPIC_CALL: Final = "topics"
# How many bytes of messages one shard answers with, unless a single one has more.
_MOST_BYTES: Final = 192 * 1024

Json = dict[str, Any]
Done = Callable[[Json], None]
HeardAll = Callable[[Sequence[Json]], None]


class TopicsEverywhere(TopicService):
    """Answers calls of `/service/topics` in one of several shards, and what others ask."""

    def __init__(
        self, state: ServerState, life: TopicLife, homes: HomesPort, far: FarTopics
    ) -> None:
        super().__init__(
            life,
            TopicStatuses(state.topics, state.rules, state.work, state.routes),
            channels=state.channels,
            topics=state.topics,
            histories=state.hub.histories,
            node=state.node,
            rights=state.rights,
            budgets=state.budgets,
        )
        self._state = state
        self._homes = homes
        self._far = far
        # What other shards, or this one, may ask for.
        self._ways: dict[str, Callable[[Mapping[str, Any], Done, float], None]] = {
            "get": self._read,
            "empty": self._empty_here,
            "state": self._show_here,
            "list": self._list_here,
            "erase": self._erase_here,
        }

    # What clients ask

    def _show(self, call: ServiceCall, channel: Channel, _: Options) -> None:
        self._check_reading(call, channel)
        asked = {"state": channel.name}
        self._ask(call, self._homes.homes_of(channel.name), asked, partial(_shown, call))

    def _list(self, call: ServiceCall, pattern: Channel, given: Options) -> None:
        self._check_reading(call, pattern)
        limit = limit_of(given)
        asked = {"list": pattern.name, "after": after_of(given), "limit": limit}

        def listed(answers: Sequence[Json]) -> None:
            found, after = _page(limit, answers)
            self._charge(call, len(found))
            call.answer({"topics": found, "next": after})

        self._ask(call, self._homes.homes_of(pattern.name), asked, listed)

    def _erase_topics(
        self, call: ServiceCall, pattern: Channel, given: Options, *, is_forced: bool
    ) -> None:
        """First list the topics, so that no more are erased than the client wants."""
        limit = limit_of(given)
        asked = {"list": pattern.name, "after": after_of(given), "limit": limit}

        def listed(answers: Sequence[Json]) -> None:
            found, after = _page(limit, answers)
            self._charge(call, len(found))
            self._erase_found(call, [each["channel"] for each in found], after, is_forced=is_forced)

        self._ask(call, self._homes.homes_of(pattern.name), asked, listed)

    def _erase_found(
        self, call: ServiceCall, names: Sequence[str], after: str | None, *, is_forced: bool
    ) -> None:
        by_home: dict[int | None, list[str]] = {}
        for name in names:
            by_home.setdefault(self._homes.home_of(name), []).append(name)

        def erased(answers: Sequence[Json]) -> None:
            if all(answer["is_everywhere"] for answer in answers):
                call.answer({"erased": [*names], "next": after})
            else:
                call.fail({"code": SHARD_UNREACHABLE.text, "message": NOT_EVERYWHERE})

        asked = {home: {"erase": some, "is_forced": is_forced} for home, some in by_home.items()}
        self._ask_each(call, asked, erased)

    def _get(self, call: ServiceCall, pattern: Channel, given: Options) -> None:
        homes = self._homes.homes_of(pattern.name)
        if not any(shard is not None for shard in homes):
            super()._get(call, pattern, given)
            return
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
        self._charge(call, limit)
        self._ask(call, homes, asked, lambda answers: call.answer(_joined(limit, answers)))

    def _empty(self, call: ServiceCall, pattern: Channel, given: Options) -> None:
        homes = self._homes.homes_of(pattern.name)
        if not any(shard is not None for shard in homes):
            super()._empty(call, pattern, given)
            return
        self._check_everything(given)
        limit = limit_of(given)
        self._charge(call, limit)
        asked = {"empty": pattern.name, "limit": limit}
        self._ask(call, homes, asked, lambda answers: call.answer(_emptied(answers)))

    def _ask(
        self, call: ServiceCall, homes: Sequence[int | None], asked: Json, heard: HeardAll
    ) -> None:
        self._ask_each(call, dict.fromkeys(homes, asked), heard)

    def _ask_each(
        self, call: ServiceCall, asked: Mapping[int | None, Json], heard_all: HeardAll
    ) -> None:
        """Let these shards do it, and go on when all have answered. Otherwise the call fails."""
        answers: list[Json | None] = []

        def heard(answer: Json | None) -> None:
            answers.append(answer)
            if len(answers) == len(asked):
                found = [each for each in answers if each is not None]
                if len(found) == len(asked):
                    heard_all(found)
                else:
                    call.fail({"code": SHARD_UNREACHABLE.text, "message": _AWAY})

        read = partial(_pass_on, heard)
        if not asked:
            heard_all([])
        for shard, what in asked.items():
            if shard is None:
                self._do(what, heard, call.now)
            elif self._homes.may_send(shard):
                # Its answer counts what this client has done before.
                self._far.hurry(shard)
                self._homes.send(shard, TOPIC_CALL, to_json(what), read)
            else:
                heard(None)

    # What is done here

    def carry_out(self, letter: ShardLetter, now: float) -> None:
        """Do what another shard asks for."""

        def done(answer: Json) -> None:
            self._homes.answer(letter, to_json(answer))

        self._do(loads(letter.data), done, now)

    def _do(self, asked: Mapping[str, Any], done: Done, now: float) -> None:
        [what] = [name for name in self._ways if name in asked]
        self._ways[what](asked, done, now)

    def _empty_here(self, asked: Mapping[str, Any], done: Done, _: float) -> None:
        covered = self._histories.covered_by(self._channels.named(asked["empty"]))[0]
        names = [each.channel for each in covered[: asked["limit"]]]
        done({"emptied": names, "messages": sum(map(self._histories.erase, names))})

    def _show_here(self, asked: Mapping[str, Any], done: Done, _: float) -> None:
        topic = self._topics.get(asked["state"])
        done({"status": None if topic is None else self._statuses.of(topic).to_json()})

    def _list_here(self, asked: Mapping[str, Any], done: Done, now: float) -> None:
        pattern = self._channels.named(asked["list"])
        page = NamePage(self._topics.names, pattern, asked["after"], asked["limit"])
        found: list[Json] = []
        steps = iter(page)

        def go_on(_: float) -> bool:
            names = next(steps, None)
            found.extend(each.to_json() for each in self._statuses.of_all(names or ()))
            return names is not None

        def ended() -> None:
            done({"topics": found, "next": page.next})

        self._state.backlog.begin(SerialWork([go_on], ended).go_on, now)

    def _erase_here(self, asked: Mapping[str, Any], done: Done, now: float) -> None:
        def erased(is_everywhere: bool) -> None:
            answer = {"is_everywhere": is_everywhere}
            # The answer promises that the erasure is stored.
            self._life.when_kept(partial(done, answer))

        self._life.erase_all(asked["erase"], is_forced=asked["is_forced"], now=now, done=erased)

    def _read(self, asked: Mapping[str, Any], done: Done, now: float) -> None:
        text = asked["filter"]
        search = HistorySearch(
            self._histories,
            self._channels.named(asked["get"]),
            count=asked["count"],
            limit=asked["limit"],
            filter=None if text is None else Filter(text),
            now_ms=self._node.now_ms(),
        )
        ended = partial(self._found, search, done)
        self._state.backlog.begin(SerialWork([search.go_on], ended).go_on, now)

    def _found(self, search: HistorySearch, done: Done) -> None:
        found: list[Json] = []
        size, is_complete = 0, search.is_complete
        for message in search.messages:
            size += len(message.wire)
            if found and size > _MOST_BYTES:
                is_complete = False
                break
            event = part(event_of(self._node, message))
            found.append({"channel": message.channel, "id": message.id, "event": event})
        done({"messages": found, "complete": is_complete})


_AWAY: Final = "a worker that decides about such a channel cannot be reached"


def _pass_on(heard: Callable[[Json | None], None], answer: bytes | None) -> None:
    heard(None if answer is None or answer == NO_ANSWER else loads(answer))


def _shown(call: ServiceCall, answers: Sequence[Json]) -> None:
    [answer] = answers
    if answer["status"] is None:
        name = call.data["state"] if isinstance(call.data, Mapping) else ""
        call.fail(CallInvalid(UNKNOWN, f"{name} is not a topic").to_json())
    else:
        call.answer(answer["status"])


def _page(limit: int, answers: Sequence[Json]) -> tuple[list[Json], str | None]:
    """Return one page, and the name to continue after if there may be more."""
    ends = [answer["next"] for answer in answers if answer["next"] is not None]
    end = min(ends, default=None)
    found = [each for answer in answers for each in answer["topics"]]
    # Behind the end of a page, a shard may have more.
    found = [each for each in found if end is None or each["channel"] <= end]
    found.sort(key=lambda each: str(each["channel"]))
    if len(found) > limit:
        return found[:limit], found[limit - 1]["channel"]
    return found, end


def _joined(limit: int, answers: Sequence[Json]) -> Json:
    """Return one answer: by channel, the newest first, as one shard answers."""
    found = [each for answer in answers for each in answer["messages"]]
    found.sort(key=lambda each: (each["channel"], -each["id"]))
    is_complete = len(found) <= limit and all(answer["complete"] for answer in answers)
    return {"messages": [part(each["event"]) for each in found[:limit]], "complete": is_complete}


def _emptied(answers: Sequence[Json]) -> Json:
    names = sorted(name for answer in answers for name in answer["emptied"])
    return {"emptied": names, "messages": sum(answer["messages"] for answer in answers)}
