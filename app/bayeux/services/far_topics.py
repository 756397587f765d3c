"""Topics whose sessions are in several shards: the home of a channel decides about its topic.

Each shard tells the homes of channels what it has of their topics: exact subscriptions, and entries
in queues. The home lets all others erase a topic, and asks them before it ends one.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from holdfast.bayeux.sessions.topic_life import TopicLife
from holdfast.bayeux.state.calls import Answer, Asker, Asking
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.state.shared import Row, Shared
from holdfast.delivery.ports.homes import HomesPort
from holdfast.delivery.ports.other_shards import OthersPort
from holdfast.delivery.topics.configured import ErasureIds, Topic
from holdfast.delivery.topics.decided_elsewhere import FarTopic

# What the operations are called.
TOLD: Final = "topics told"
ERASE: Final = "topic erase"
USED: Final = "topics used"
# How many topics one call asks about.
_MOST: Final = 500
# When to ask again about a topic that did not end.
_AGAIN_S: Final = 1.0
# How often topics are forgotten of which nothing is here.
_CLEAN_S: Final = 60.0

Erased = Callable[[bool], None]


class FarTopics:
    """What this shard knows of topics elsewhere, and what other shards have of topics here.

    An `TopicsElsewhere`, and a `CountsPort`.
    """

    def __init__(
        self, state: ServerState, life: TopicLife, homes: HomesPort, others: OthersPort
    ) -> None:
        self._state = state
        self._life = life
        self._homes = homes
        self._others = others
        # Topics whose home is another shard, by name, as long as something of them is here.
        self._far: dict[str, FarTopic] = {}
        self._shared: Shared[str] = Shared(self, state, homes, others, what=TOLD)
        # By name of a topic here, what other shards have of it.
        self._known: dict[str, dict[int, Row]] = {}
        # By topic and shard, the erasure that this shard is asked to carry out: what it told of
        # subscriptions before holds no more.
        self._erasing: dict[tuple[str, int], int] = {}
        # By topic, the ones who wait until its next erasure is carried out everywhere.
        self._waiters: dict[str, list[_Waiter]] = {}
        # Topics that may end; and by name, those about which others are asked, as they were asked.
        self._to_end: dict[Topic, None] = {}
        self._ending: dict[str, Sequence[Topic]] = {}
        self._clean_at = 0.0
        state.calls.handle(USED, self._say_used)
        state.calls.handle(ERASE, self._carry_out_erasure)

    def __len__(self) -> int:
        """Return of how many topics elsewhere something is here, or was so a while ago."""
        return len(self._far)

    def tick(self, now: float, _: int) -> None:
        """Tell what has changed, and forget topics of which nothing is here."""
        if not self._state.topics.are_used:
            return
        self._shared.tick(now)
        if now >= self._clean_at:
            self._clean_at = now + _CLEAN_S
            self._clean()

    def _clean(self) -> None:
        # Messages that are just being stored know their topics, too.
        for topic in [*self._far.values()]:
            is_used = topic.is_told or topic.queued or self._count_subscribers(topic.name)
            if topic.is_idle and not is_used:
                del self._far[topic.name]
            topic.is_idle = True

    # What is here of topics elsewhere

    def topic(self, name: str) -> FarTopic | None:
        found = self._far.get(name)
        if found is not None:
            return found
        if name.endswith("*") or not self._is_topic(name) or self._homes.home_of(name) is None:
            return None
        found = self._far[name] = FarTopic(name, self._state.topics, self)
        return found

    def _is_topic(self, name: str) -> bool:
        return self._state.rules.topic(name) is not None or self._homes.is_topic(name)

    def begin(self, names: Iterable[str]) -> None:
        self._life.count_far({*names})

    def learned(self, names: Iterable[str]) -> None:
        for name in names:
            if name in self._far or self._count_subscribers(name):
                self.subscriptions_changed(name)

    def forget(self, name: str) -> None:
        # Shards that use it no more do not tell so.
        self._known.pop(name, None)

    def subscriptions_changed(self, name: str) -> bool:
        topic = self.topic(name)
        if topic is None:
            return False
        self._note(topic, is_urgent=True)
        return True

    def count(self, topic: FarTopic, copies: int) -> None:
        # Another one may have been made since the message came.
        found = self._far.setdefault(topic.name, topic)
        found.queued += copies
        self._note(found, is_urgent=False)

    def erased(self, topic: FarTopic) -> None:
        self._note(topic, is_urgent=True)

    def _note(self, topic: FarTopic, *, is_urgent: bool) -> None:
        topic.is_idle = False
        home = self._homes.home_of(topic.name)
        if home is None:
            return
        self._shared.note(home, topic.name)
        if is_urgent:
            self._shared.tell_soon()

    def _count_subscribers(self, name: str) -> int:
        return len(self._state.routes.subscribers(name))

    # What is told

    def everything_for(self, shard: int) -> Iterator[str]:
        return iter([name for name in self._far if self._homes.home_of(name) == shard])

    def row_of(self, name: str) -> Row:
        topic = self._far.get(name)
        subscribers = self._count_subscribers(name)
        entries, erased_at = (0, 0) if topic is None else (topic.queued, topic.erased_at)
        if topic is not None:
            topic.is_told = bool(subscribers or entries)
        return [name, subscribers, entries, erased_at]

    def is_nothing(self, row: Row) -> bool:
        return not any(row[1:])

    # What is heard

    def replace(self, shard: int, rows: Sequence[Row]) -> None:
        fresh = {row[0] for row in rows}
        for name in [name for name, known in self._known.items() if shard in known]:
            if name not in fresh:
                self.take(shard, [name, 0, 0, 0])
        for row in rows:
            self.take(shard, row)

    def take(self, shard: int, row: Row) -> None:
        name, subscribers, entries, erased_at = row
        if subscribers or entries:
            self._known.setdefault(name, {})[shard] = row
        elif name in self._known:
            self._known[name].pop(shard, None)
            if not self._known[name]:
                del self._known[name]
        if self._erasing.get((name, shard), erased_at + 1) <= erased_at:
            del self._erasing[name, shard]
        self._look_at(name)

    def _look_at(self, name: str) -> None:
        topics = self._state.topics
        entries = sum([row[2] for row in self._known.get(name, {}).values()])
        topics.refer_elsewhere(name, entries)
        if self.subscribers(name):
            topics.refer_by_subscription(name)
        else:
            topics.unsubscribe(name)

    def subscribers(self, name: str) -> int:
        rows = self._known.get(name)
        if rows is None:
            return 0
        erasing = self._erasing
        return sum([row[1] for shard, row in rows.items() if (name, shard) not in erasing])

    # Erasing at all shards

    def hurry(self, shard: int) -> None:
        self._shared.hurry(shard)

    @property
    def may_erase(self) -> bool:
        """Whether all other shards can be told now."""
        return all(self._homes.may_send(shard) for shard in self._shared.shards)

    def when_erased(self, names: Sequence[str], done: Erased) -> Callable[[], None]:
        waiter = _Waiter(len(names), done)
        for name in names:
            self._waiters.setdefault(name, []).append(waiter)
        return waiter.ended_here

    def has_ended(self, name: str) -> None:
        for waiter in self._waiters.pop(name, []):
            waiter.ended(True)

    def erase(self, topic: Topic, named: ErasureIds, *, is_forced: bool) -> None:
        name = topic.name
        waiters = self._waiters.pop(name, [])
        for waiter in waiters:
            waiter.waiting += len(self._shared.shards) - 1
        asked = {"name": name, "ids": named, "is_forced": is_forced}
        erased_at = named.erased
        for shard in self._shared.shards:
            self._erasing[name, shard] = erased_at
            answered = partial(
                self._erased_at, name=name, shard=shard, erased_at=erased_at, waiters=waiters
            )
            self._state.calls.send(shard, ERASE, asked, answered)

    def _erased_at(
        self,
        answer: Answer | None,
        *,
        name: str,
        shard: int,
        erased_at: int,
        waiters: Sequence["_Waiter"],
    ) -> None:
        if self._erasing.get((name, shard)) == erased_at:
            # Without an answer, the call may be lost. If it is not, that shard tells it later.
            del self._erasing[name, shard]
            self._look_at(name)
        for waiter in waiters:
            waiter.ended(bool(answer))

    def _carry_out_erasure(self, asked: Asking, asker: Asker, now: float) -> None:
        """Erase a topic here, because its home has done so."""
        topic = self.topic(asked["name"])
        if topic is None:
            # The rules are being changed.
            asker.answer({})
            return
        self._life.erase_here(
            topic,
            is_forced=asked["is_forced"],
            named=ErasureIds(*asked["ids"]),
            now=now,
            done=partial(self._erased_here, asker),
        )

    def _erased_here(self, asker: Asker) -> None:
        self._life.when_kept(partial(self._tell_erased, asker))

    def _tell_erased(self, asker: Asker) -> None:
        if asker.shard is not None:
            self.hurry(asker.shard)
        asker.answer_behind({"done": True})

    # Ending topics

    def stay(self, topic: Topic) -> None:
        self._ending.pop(topic.name, None)
        self._to_end.pop(topic, None)

    def end_unless_used(self, topic: Topic) -> None:
        if not self._to_end:
            self._state.backlog.at_turn_end(self._ask)
        self._to_end[topic] = None

    def _ask(self, now: float) -> None:
        """Ask the others about the topics that may end."""
        topics, self._to_end = [*self._to_end], {}
        if not self._are_all_there():
            # Calls without a reader would fill the log.
            for topic in topics:
                self._state.topic_changes.time_out_in(topic, _AGAIN_S)
            return
        for start in range(0, len(topics), _MOST):
            ending = topics[start : start + _MOST]
            names = [topic.name for topic in ending]
            self._ending |= dict.fromkeys(names, ending)
            asked: dict[int | None, Asking] = {
                shard: {"names": names} for shard in self._shared.shards
            }
            self._state.calls.gather(USED, asked, partial(self._heard_used, ending), now=now)

    def _are_all_there(self) -> bool:
        return self.may_erase and not any(map(self._others.is_away, self._shared.shards))

    def _heard_used(self, ending: Sequence[Topic], answers: Sequence[Answer] | None) -> None:
        """End the topics that no other shard uses, and that have not changed meanwhile."""
        used = {name for answer in answers or () for name in answer["used"]}
        for topic in ending:
            if self._ending.get(topic.name) is not ending:
                continue
            del self._ending[topic.name]
            if topic.name in used or answers is None:
                self._state.topic_changes.time_out_in(topic, _AGAIN_S)
            else:
                topic.end()

    def _say_used(self, asked: Asking, asker: Asker, _: float) -> None:
        """Answer which of these topics have subscriptions or entries here."""
        asker.answer({"used": [name for name in asked["names"] if self._is_used(name)]})

    def _is_used(self, name: str) -> bool:
        topic = self._far.get(name)
        return bool(self._count_subscribers(name) or (topic is not None and topic.queued))


class _Waiter:
    """Waits until some topics are erased here and elsewhere."""

    def __init__(self, names: int, done: Erased) -> None:
        # How many topics and answers are missing, and the end of the erasure here.
        self.waiting = names + 1
        self._is_whole = True
        self._done = done

    def ended_here(self) -> None:
        """Take note that all is erased here."""
        self.ended(True)

    def ended(self, is_whole: bool) -> None:
        """Take note of one answer."""
        self.waiting -= 1
        self._is_whole &= is_whole
        if not self.waiting:
            self._done(self._is_whole)
