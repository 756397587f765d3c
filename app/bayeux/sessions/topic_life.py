"""Restores topics when the server starts, and erases them."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from holdfast.bayeux.publish.topic_effects import depth_of
from holdfast.bayeux.session import Session
from holdfast.bayeux.sessions.erasure import Erasure
from holdfast.bayeux.sessions.owner import SessionOwner
from holdfast.bayeux.state.backlog import SerialWork, Work
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.wire.options import ChannelRule
from holdfast.delivery.messages.keeping import HistoryDepth
from holdfast.delivery.settling.undelivered import Undelivered
from holdfast.delivery.topics.configured import ORDINARY_CONFIG, Topic, TopicRecord
from holdfast.delivery.topics.counting import count_for


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
        for receiver in (*self._state.sessions, *self._state.waiting_places.queues()):
            for message in receiver.queue.messages():
                # Neither a replay nor the event that announces its end is a message of the topic.
                if message.is_routed:
                    topic = self._restored(known, message.channel, records)
                    if topic is not None:
                        count_for(topic, message)
                        receiver.queue.tell_entered(message)
        for name in records:
            self._restored(known, name, records)

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
            known[name] = topics.restore(name, records.get(name), in_history=in_history)
        return known[name]

    def records(self) -> dict[str, TopicRecord]:
        """Return the records of all topics, to store them again."""
        topics = self._state.topics
        for topic in topics:
            topic.stored = topics.record(topic)
        return {topic.name: topic.stored for topic in topics if topic.stored is not None}

    def erase(
        self,
        topic: Topic,
        *,
        is_forced: bool,
        now: float,
        done: Callable[[], None] | None = None,
    ) -> None:
        """Erase the topic, over several turns if there are many receivers.

        Then call `done`.
        """
        work = self._erasure(topic, is_forced=is_forced)
        self._state.backlog.begin(work if done is None else SerialWork([work], done).go_on, now)

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

    def erase_all(
        self, names: Sequence[str], *, is_forced: bool, now: float, done: Callable[[], None]
    ) -> None:
        """Erase the topics that have these names when their turn comes, then call `done`."""
        found = map(self._state.topics.get, names)
        works = (self._erasure(each, is_forced=is_forced) for each in found if each is not None)
        self._state.backlog.begin(SerialWork(works, done).go_on, now)

    def _erasure(self, topic: Topic, *, is_forced: bool) -> Work:
        state = self._state
        erasure = Erasure(
            topic,
            self._receivers(),
            is_forced=is_forced,
            topics=state.topics,
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
