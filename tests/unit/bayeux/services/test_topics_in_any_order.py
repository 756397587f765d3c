"""The home knows what keeps a topic, and erasures end subscriptions everywhere, in any order."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.delivery.topics.counting import topic_of
from holdfast.delivery.topics.states import TopicState, state_of
from holdfast.settings import ChannelSettings
from tests.effort import TIMES
from tests.unit.bayeux.publish.addressing import named
from tests.unit.bayeux.publish.stage import ANYBODY, EVENTS, PEOPLE, Stage
from tests.unit.bayeux.services.test_far_presence import settled
from tests.unit.bayeux.services.test_far_topics import events

# Their homes are the second and the third of three shards. Nobody erases the last one, to which a
# session of the first shard is always subscribed.
ERASABLE = ["/home/a", "/home/b"]
HELD = "/home/e"
TOPICS = [*ERASABLE, HELD]
KEEPER = "fay/1"
RULES = {"/home/*": ChannelSettings(topic=True, destroy_delay=1000, durable=True)}
STEPS = st.one_of(
    st.tuples(st.just("publish"), ANYBODY, st.sampled_from(TOPICS)),
    st.tuples(st.just("join"), ANYBODY, st.sampled_from([*ERASABLE, "/home/*"])),
    st.tuples(st.just("leave"), ANYBODY, st.sampled_from([*ERASABLE, "/home/*"])),
    st.tuples(st.just("erase"), ANYBODY, st.sampled_from(ERASABLE), st.booleans()),
    st.tuples(st.just("pass_time"), st.integers(0, 2), st.sampled_from([0.1, 1.2])),
    *EVENTS,
)


class Play(Stage):
    """They publish, subscribe, and erase."""

    def __init__(self) -> None:
        super().__init__(channels=RULES)
        self.number = 0
        # Topics that somebody has wanted to erase, and subscriptions of which nobody has.
        self.erased: set[str] = set()
        self.joined: set[tuple[str, str]] = set()
        for shard in self.world.shards:
            shard.server.advance(0.2)
        named(self.world, KEEPER).subscribe(HELD)
        self.publish(PEOPLE[0], HELD)
        for _ in range(2):
            settled(self.world)

    # What they do

    def publish(self, name: str, channel: str) -> None:
        client = self.clients[name]
        asked = client.publish(channel, self.number, ext={"delivery": {"priority": 5}})
        self.number += 1
        client.server.turn()
        self.wait_for(name, asked)

    def join(self, name: str, pattern: str) -> None:
        client = self.clients[name]
        if pattern not in client.session.subscriptions:
            self.wait_for(name, client.subscribe(pattern))
            client.server.turn()
            self.joined.add((name, pattern))

    def leave(self, name: str, pattern: str) -> None:
        client = self.clients[name]
        if pattern in client.session.subscriptions:
            client.send({"channel": "/meta/unsubscribe", "subscription": pattern})
            client.server.turn()
        self.joined.discard((name, pattern))

    def erase(self, name: str, topic: str, is_forced: bool) -> None:
        client = self.clients[name]
        data = {"erase": topic, "forceDestroy": is_forced}
        self.wait_for(name, client.publish("/service/topics", data))
        client.server.turn()
        self.erased.add(topic)

    def pass_time(self, shard: int, seconds: float) -> None:
        self.world.shards[shard].server.advance(seconds)

    # What must hold

    def play(self, steps: list[Any]) -> None:
        super().play([each for step in steps for each in (step, ("look",))])

    def look(self) -> None:
        """The topic with a subscription has not ended, and only erasures end subscriptions."""
        topic = self._at_home(HELD)
        assert topic is not None
        assert topic.is_configured
        for name, pattern in self.joined:
            if pattern not in self.erased:
                assert pattern in self.clients[name].session.subscriptions

    def _at_home(self, name: str) -> Any:
        home = self.world.home_of_channel(name)
        assert home is not None
        return self.world.shards[home].server.bayeux.state.topics.get(name)

    def repeat(self) -> None:
        for _ in range(4):
            settled(self.world, 0.6)

    def check(self) -> None:
        settled(self.world)
        for name in TOPICS:
            self._check_state(name)
        for number, name in enumerate(ERASABLE):
            self._check_erasure(name, is_forced=bool(number))

    def _check_erasure(self, name: str, *, is_forced: bool) -> None:
        """In the end nothing is subscribed, and everybody who was has heard of it."""
        subscribed = [each for each in PEOPLE if name in self.clients[each].session.subscriptions]
        self.publish(PEOPLE[0], name)
        settled(self.world)
        self.erase(PEOPLE[1], name, is_forced)
        for _ in range(2):
            settled(self.world)
        for each in PEOPLE:
            client = self.clients[each]
            assert name not in client.session.subscriptions
            found = [event for event in events(client) if event["channel"] == name]
            ends = [event["ext"]["delivery"].get("subscription") for event in found[-1:]]
            is_covered = "/home/*" in client.session.subscriptions
            expected = "/home/*" if is_covered else name
            assert ends == ([expected] if each in subscribed or is_covered else [])
            assert len(found) <= (1 if is_forced else 2)
        for _ in range(3):
            settled(self.world, 0.6)
        assert self._at_home(name) is None

    def _check_state(self, name: str) -> None:
        topic = self._at_home(name)
        queued = sum(self._entries(shard.server.bayeux.state, name) for shard in self.world.shards)
        subscribers = sum(
            len(shard.server.bayeux.state.routes.subscribers(name)) for shard in self.world.shards
        )
        is_configured = topic is not None and topic.is_configured
        expected = state_of(
            is_configured=is_configured,
            has_history=False,
            is_queued=queued > 0,
            is_subscribed=subscribers > 0,
        )
        found = TopicState.DEAD if topic is None else topic.state
        assert found is expected, (name, queued, subscribers)
        if topic is not None:
            assert topic.queued + topic.elsewhere == queued

    def _entries(self, state: Any, name: str) -> int:
        receivers = (*state.sessions, *state.waiting_places.queues())
        return sum(
            message.channel == name and topic_of(message) is not None
            for receiver in receivers
            for message in receiver.queue.messages()
        )


@pytest.mark.slow
@given(st.lists(STEPS, max_size=40))
@settings(max_examples=30 * TIMES)
def test_homes_know_what_keeps_topics_and_erase_them_everywhere(steps: list[Any]) -> None:
    Play().play(steps)
