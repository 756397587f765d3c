"""`/service/topics` about histories that other shards keep: each home reads or empties its own."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from orjson import loads

from holdfast.bayeux.services.history_search import HistorySearch
from holdfast.bayeux.services.topic_calls import Options, TopicService, entries_of, filter_of
from holdfast.bayeux.services.topic_status import TopicStatuses, event_of
from holdfast.bayeux.sessions.topic_life import TopicLife
from holdfast.bayeux.state.backlog import SerialWork
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.state.service_channels import ServiceCall, limit_of
from holdfast.bayeux.wire.operation import Operation
from holdfast.delivery.basics.channels import Channel
from holdfast.delivery.basics.error_codes import SHARD_UNREACHABLE
from holdfast.delivery.basics.json_text import to_json
from holdfast.delivery.messages.shard_letter import ShardLetter
from holdfast.delivery.ports.homes import NO_ANSWER, HomesPort
from holdfast.delivery.routing.selections import Filter

# What the letter is called in the log.
TOPIC_CALL: Final = "topics"
# How many bytes of messages one shard answers with, unless a single one has more.
_MOST_BYTES: Final = 192 * 1024

Json = dict[str, Any]
Done = Callable[[Json], None]


class TopicsEverywhere(TopicService):
    """Answers calls of `/service/topics` in one of several shards, and what others ask."""

    def __init__(self, state: ServerState, life: TopicLife, homes: HomesPort) -> None:
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

    # What clients ask

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
        self._ask(call, homes, asked, partial(_joined, limit))

    def _empty(self, call: ServiceCall, pattern: Channel, given: Options) -> None:
        homes = self._homes.homes_of(pattern.name)
        if not any(shard is not None for shard in homes):
            super()._empty(call, pattern, given)
            return
        self._check_everything(given)
        limit = limit_of(given)
        self._charge(call, limit)
        self._ask(call, homes, {"empty": pattern.name, "limit": limit}, _emptied)

    def _ask(
        self,
        call: ServiceCall,
        homes: Sequence[int | None],
        asked: Json,
        join: Callable[[Sequence[Json]], Json],
    ) -> None:
        """Let these shards do it, and answer the call when all have answered."""
        answers: list[Json | None] = []

        def heard(answer: Json | None) -> None:
            answers.append(answer)
            if len(answers) == len(homes):
                found = [each for each in answers if each is not None]
                if len(found) == len(homes):
                    call.answer(join(found))
                else:
                    call.fail({"code": SHARD_UNREACHABLE.text, "message": _AWAY})

        def read(answer: bytes | None) -> None:
            heard(_read(answer))

        for shard in homes:
            if shard is None:
                self._do(asked, heard, call.now)
            elif self._homes.may_send(shard):
                self._homes.send(shard, TOPIC_CALL, to_json(asked), read)
            else:
                heard(None)

    # What is done here

    def carry_out(self, letter: ShardLetter, now: float) -> None:
        """Do what another shard asks for."""

        def done(answer: Json) -> None:
            self._homes.answer(letter, to_json(answer))

        self._do(loads(letter.data), done, now)

    def _do(self, asked: Mapping[str, Any], done: Done, now: float) -> None:
        channel = self._channels.named(asked.get("get") or asked["empty"])
        if "empty" in asked:
            covered, _ = self._histories.covered_by(channel)
            names = [each.channel for each in covered[: asked["limit"]]]
            done({"emptied": names, "messages": sum(map(self._histories.erase, names))})
            return
        text = asked["filter"]
        search = HistorySearch(
            self._histories,
            channel,
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
            event = event_of(self._node, message)
            found.append({"channel": message.channel, "id": message.id, "event": event})
        done({"messages": found, "complete": is_complete})


_AWAY: Final = "a worker that keeps such a history cannot be reached"


def _read(answer: bytes | None) -> Json | None:
    if answer is None or answer == NO_ANSWER:
        return None
    found: Json = loads(answer)
    return found


def _joined(limit: int, answers: Sequence[Json]) -> Json:
    """Return one answer: by channel, the newest first, as one shard answers."""
    found = [each for answer in answers for each in answer["messages"]]
    found.sort(key=lambda each: (each["channel"], -each["id"]))
    is_complete = len(found) <= limit and all(answer["complete"] for answer in answers)
    return {"messages": [each["event"] for each in found[:limit]], "complete": is_complete}


def _emptied(answers: Sequence[Json]) -> Json:
    names = sorted(name for answer in answers for name in answer["emptied"])
    return {"emptied": names, "messages": sum(answer["messages"] for answer in answers)}
