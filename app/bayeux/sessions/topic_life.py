"""Restores topics when the server starts, and erases them."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from holdfast.bayeux.publish.topic_effects import depth_of
from holdfast.bayeux.session import Session
from holdfast.bayeux.sessions.erasure import Erasure
from holdfast.bayeux.sessions.owner import SessionOwner
from holdfast.bayeux.state.backlog import SerialWork, Work
from holdfast.bayeux.state.channel_rules import ChannelRule
from holdfast.bayeux.state.server_state import ServerState
from holdfast.delivery.basics.ignoring import ignore
from holdfast.delivery.messages.keeping import HistoryDepth
from holdfast.delivery.messages.message import Message
from holdfast.delivery.queues.queue import CallbackQueue
from holdfast.delivery.settling.undelivered import Undelivered
from holdfast.delivery.topics.configured import ORDINARY_CONFIG, ErasureIds, Topic, TopicRecord
from holdfast.delivery.topics.counting import count_for

# What callers hear if another shard has not said that it has erased a topic.
NOT_EVERYWHERE: Final = "a worker cannot be reached: it erases its part later, or not at all"
# Hears whether topics are erased in all shards.
Erased = Callable[[bool], None]


class TopicLife:
    """Restores and erases topics."""

    def __init__(
        self, state: ServerState, owner: SessionOwner, undelivered: Undelivered[Session]
    ) -> None:
        self._state = state
        self._owner = owner
        self._undelivered = undelivered
        # The stored records of topics, while the server starts.
        self._found: Mapping[str, TopicRecord] = {}

    def expect(self, records: Mapping[str, TopicRecord]) -> None:
        """Set the stored records of topics. Call it before sessions and histories are restored."""
        assert not len(self._state.sessions)
        assert not len(self._state.histories)
        self._found = records
        own = [each.config for each in records.values() if each.config is not None]
        if any(config.depth is not None for config in own):
            self._state.keep_history()

    def depth(self, name: str, rule: ChannelRule) -> HistoryDepth | None:
        """Return the depth of a channel's history that the start preserves."""
        record = self._found.get(name)
        own = None if record is None else record.config
        return depth_of(rule, own or ORDINARY_CONFIG)

    def restore(self) -> None:
        """Restore topics, after sessions and histories. Their timers start again."""
        topics, records = self._state.topics, self._found
        self._found = {}
        if not (records or topics.are_used):
            return
        known: dict[str, Topic | None] = {}
        for message in self._state.hub.histories:
            topic = self._restored(known, message.channel, records, in_history=True)
            if topic is not None:
                count_for(topic, message)
                topic.keep()
        for queue, message in self._routed():
            topic = self._restored(known, message.channel, records)
            if topic is not None:
                count_for(topic, message)
                queue.tell_entered(message)
        for name in records:
            self._restored(known, name, records)

    def _routed(self) -> Iterator[tuple[CallbackQueue, Message]]:
        """Yield the messages in queues that topics count.

        Neither a replay nor the event that announces its end is a message of the topic.
        """
        for receiver in (*self._state.sessions, *self._state.waiting_places.queues()):
            for message in receiver.queue.messages():
                if message.is_routed:
                    yield receiver.queue, message

    def count_far(self, names: Collection[str]) -> None:
        """Count restored messages for topics that other shards have, and no rule calls so."""
        for queue, message in self._routed():
            topic = self._state.topics.far(message.channel) if message.channel in names else None
            if topic is not None:
                count_for(topic, message)
                queue.tell_entered(message)

    def _restored(
        self,
        known: dict[str, Topic | None],
        name: str,
        records: Mapping[str, TopicRecord],
        *,
        in_history: bool = False,
    ) -> Topic | None:
        if name not in known:
            topics = self._state.topics
            known[name] = topics.far(name) or topics.restore(
                name, records.get(name), in_history=in_history
            )
        return known[name]

    def records(self) -> dict[str, TopicRecord]:
        """Return the records of all topics, to store them again."""
        topics = self._state.topics
        for topic in topics:
            topic.stored = topics.record(topic)
        return {topic.name: topic.stored for topic in topics if topic.stored is not None}

    def when_kept(self, done: Callable[[], None]) -> bool:
        """Call `done` when the store has all earlier changes; at once if the store is unavailable.

        Returns whether the store has them.
        """
        is_kept = self._state.store.is_available
        if is_kept:
            self._state.when_kept(lambda _: done())
        else:
            done()
        return is_kept

    def erase(
        self, topic: Topic, *, is_forced: bool, now: float, done: Erased | None = None
    ) -> None:
        """Erase the topic: see `erase_all`."""
        self.erase_all([topic.name], is_forced=is_forced, now=now, done=done or ignore)

    def erase_all(self, names: Sequence[str], *, is_forced: bool, now: float, done: Erased) -> None:
        """Erase the topics that have these names, over several turns if there are many receivers.

        Then `done` hears whether they are erased in all shards. If another shard cannot be told of
        it, none is erased.
        """
        topics = self._state.topics
        elsewhere = topics.elsewhere
        ended: Callable[[], None] = partial(done, True)
        if elsewhere is not None:
            if not elsewhere.may_erase:
                done(False)
                return
            names = [name for name in names if topics.get(name) is not None]
            ended = elsewhere.when_erased(names, done)
        works = self._erasures(names, is_forced=is_forced)
        self._state.backlog.begin(SerialWork(works, ended).go_on, now)

    def _erasures(self, names: Sequence[str], *, is_forced: bool) -> Iterator[Work]:
        topics = self._state.topics
        for name in names:
            topic = topics.get(name)
            if topic is not None:
                yield self._erasure(topic, is_forced=is_forced)
            elif topics.elsewhere is not None:
                topics.elsewhere.has_ended(name)

    def erase_here(
        self,
        topic: Topic,
        *,
        is_forced: bool,
        named: ErasureIds,
        now: float,
        done: Callable[[], None],
    ) -> None:
        """Erase a topic in this shard, because its home has erased it. Then call `done`."""
        work = self._erasure(topic, is_forced=is_forced, named=named)
        self._state.backlog.begin(SerialWork([work], done).go_on, now)

    def _erasure(self, topic: Topic, *, is_forced: bool, named: ErasureIds | None = None) -> Work:
        state = self._state
        erasure = Erasure(
            topic,
            self._receivers(),
            is_forced=is_forced,
            named=named,
            channels=state.channels,
            subscriptions=state.subscriptions,
            hub=state.hub,
            node=state.node,
            owner=self._owner,
            undelivered=self._undelivered,
        )
        return erasure.go_on

    def _receivers(self) -> Iterator[Session]:
        """Yield all sessions with queues, as they are at that moment."""
        yield from self._state.waiting_places.queues()
        yield from [*self._state.sessions]
