"""The life of topics: what follows when one has changed, its destroy timer, its erasure."""

from holdfast.bayeux.erasure import Erasure
from holdfast.bayeux.ownership import SessionOwner
from holdfast.bayeux.server_state import ServerState
from holdfast.bayeux.sessions import Session
from holdfast.bayeux.timers import Timers
from holdfast.delivery.topic_states import TopicState
from holdfast.delivery.topics import Topic
from holdfast.delivery.undelivered import Undelivered

# Topics that one tick ends, about 3 us each.
_MOST = 5000


class TopicLife:
    """Ends topics that nothing refers to, and erases topics."""

    def __init__(
        self, state: ServerState, owner: SessionOwner, undelivered: Undelivered[Session]
    ) -> None:
        self._state = state
        self._owner = owner
        self._undelivered = undelivered
        self._timers: Timers[Topic] = Timers()
        state.topics.on_change = self._wake

    def _wake(self) -> None:
        self._state.backlog.at_turn_end(self._look_at_changed)

    def _look_at_changed(self, _: float) -> None:
        for topic in self._state.topics.take_changed():
            self._timers.drop(topic)
            if topic.state is TopicState.UNREFERENCED:
                self._let_end(topic)

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

    def erase(self, topic: Topic, *, is_forced: bool, now: float) -> None:
        """Erase the topic: now or, if many receivers are concerned, over several turns."""
        erasure = Erasure(self._state, self._owner, self._undelivered, topic, is_forced=is_forced)
        self._state.backlog.begin(erasure.go_on, now)
