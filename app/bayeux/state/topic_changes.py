"""The effects of changed topics: stored records, destroy delays, forgotten histories."""

from functools import partial

from holdfast.bayeux.state.backlog import Backlog
from holdfast.delivery.basics.node import Node
from holdfast.delivery.basics.timers import Timers
from holdfast.delivery.ports.store_port import StorePort
from holdfast.delivery.routing.histories import Histories
from holdfast.delivery.topics.configured import Topic, TopicRecord, Topics
from holdfast.delivery.topics.states import TopicState

# How many topics one tick ends, about 10 us each.
_MOST = 1000


class TopicChanges:
    """Applies the changes of a turn at its end, and ends topics without references."""

    def __init__(
        self, backlog: Backlog, store: StorePort, histories: Histories, node: Node
    ) -> None:
        self._backlog = backlog
        self._store = store
        self._histories = histories
        self._node = node
        self._timers: Timers[Topic] = Timers()

    def note(self, topics: Topics) -> None:
        """Look at the changed topics when the turn ends."""
        self._backlog.at_turn_end(partial(self._look_at_changed, topics))

    def _look_at_changed(self, topics: Topics, _: float) -> None:
        changes = dict[str, TopicRecord | None]()
        for topic in topics.take_changed():
            self._timers.drop(topic)
            if topic.state is TopicState.UNREFERENCED:
                self._let_end(topic)
            if topic.state is TopicState.DEAD and topics.get(topic.name) is None:
                # Messages published before the channel became a topic did not keep it alive.
                self._histories.forget(topic.name)
            record = topics.record(topic)
            if record != topic.stored:
                changes[topic.name] = topic.stored = record
        if changes:
            self._store.save_topics(changes)

    def _let_end(self, topic: Topic) -> None:
        """End the unreferenced topic when its destroy delay is over."""
        delay_ms = topic.config.destroy_delay_ms
        if not delay_ms:
            topic.time_out()
        elif delay_ms > 0:
            self._timers.ring_by(topic, (self._node.now_ms() + delay_ms) / 1000)

    def time_out_in(self, topic: Topic, seconds: float) -> None:
        """Let the topic, which did not end in time, do so after a while."""
        self._timers.ring_by(topic, self._node.now_ms() / 1000 + seconds)

    def tick(self, wall_ms: int) -> None:
        """End topics whose destroy delay is over, by the wall clock."""
        for topic in self._timers.ring(wall_ms / 1000, most=_MOST):
            topic.time_out()
