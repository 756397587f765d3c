"""The life cycle of topics: the effects of changes, destroy timers, erasure."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from holdfast.bayeux.publish.topic_effects import depth_of
from holdfast.bayeux.session import Session
from holdfast.bayeux.sessions.erasure import Erasure
from holdfast.bayeux.sessions.owner import SessionOwner
from holdfast.bayeux.state.backlog import SerialWork, Work
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.wire.options import ChannelRule
from holdfast.delivery.basics.timers import Timers
from holdfast.delivery.settling.undelivered import Undelivered
from holdfast.delivery.topics.configured import ORDINARY_CONFIG, HistoryDepth, Topic, TopicRecord
from holdfast.delivery.topics.states import TopicState

# How many topics one tick ends, about 10 us each.
_MOST = 1000


class TopicLife:
    """Ends topics without references, and erases topics."""

    def __init__(
        self, state: ServerState, owner: SessionOwner, undelivered: Undelivered[Session]
    ) -> None:
        self._state = state
        self._owner = owner
        self._undelivered = undelivered
        self._timers: Timers[Topic] = Timers()
        # The stored records of topics, while the server starts.
        self._found: Mapping[str, TopicRecord] = {}
        state.topics.on_change = self._wake

    def _wake(self) -> None:
        self._state.backlog.at_turn_end(self._look_at_changed)

    def _look_at_changed(self, _: float) -> None:
        topics, changes = self._state.topics, dict[str, TopicRecord | None]()
        for topic in topics.take_changed():
            self._timers.drop(topic)
            if topic.state is TopicState.UNREFERENCED:
                self._let_end(topic)
            if topic.state is TopicState.DEAD and topics.get(topic.name) is None:
                # Messages published before the channel became a topic did not keep it alive.
                self._state.hub.histories.forget(topic.name)
            record = topics.record(topic)
            if record != topic.stored:
                changes[topic.name] = topic.stored = record
        if changes:
            self._state.store.save_topics(changes)

    def _let_end(self, topic: Topic) -> None:
        """End the unreferenced topic when its destroy delay is over."""
        delay_ms = topic.config.destroy_delay_ms
        if not delay_ms:
            self._state.topics.time_out(topic)
        elif delay_ms > 0:
            self._timers.ring_by(topic, (self._state.node.now_ms() + delay_ms) / 1000)

    def tick(self, wall_ms: int) -> None:
        """End topics whose destroy delay is over, by the wall clock."""
        for topic in self._timers.ring(wall_ms / 1000, most=_MOST):
            self._state.topics.time_out(topic)

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
            message.topic = topic
            if topic is not None:
                topic.keep()
        for receiver in (*self._state.sessions, *self._state.waiting_places.queues()):
            for message in receiver.queue.messages():
                # Neither a replay nor the event that announces its end is a message of the topic.
                if message.is_routed:
                    message.topic = self._restored(known, message.channel, records)
                    receiver.queue.refer(message)
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

    def save_again(self) -> None:
        """Store all topics again, because the store has lost everything."""
        topics = self._state.topics
        for topic in topics:
            topic.stored = topics.record(topic)
        stored = {topic.name: topic.stored for topic in topics if topic.stored is not None}
        if stored:
            self._state.store.save_topics(stored)

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
