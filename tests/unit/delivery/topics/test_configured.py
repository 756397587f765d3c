"""The life of topics against a naive model."""

from dataclasses import dataclass, field

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from holdfast.delivery.messages.message import Message, release
from holdfast.delivery.topics.configured import ORDINARY_CONFIG, ErasureIds, TopicConfig, Topics
from holdfast.delivery.topics.counting import count_for, topic_of
from holdfast.delivery.topics.sender_quota import SenderQuota
from holdfast.delivery.topics.states import TopicState, state_of

NAMES = st.sampled_from(("/a", "/b"))
QUEUES = 3
KEEPS_FOR_EVER = TopicConfig(destroy_delay_ms=-1)


@dataclass
class Naive:
    """One topic as the requirement describes it."""

    visible: bool = False
    history: list[Message] = field(default_factory=list)
    subscribers: int = 0


class TopicsMachine(RuleBasedStateMachine):
    """Whatever happens, each topic has the state that its conditions say."""

    def __init__(self) -> None:
        super().__init__()
        self.naive = {"/a": Naive(), "/b": Naive()}
        self.queues: list[list[Message]] = [[] for _ in range(QUEUES)]
        self.changes = 0
        self.topics = Topics(
            self._is_subscribed,
            lambda _: ORDINARY_CONFIG,
            most=10,
            makers=SenderQuota(0, 0),
            are_used=True,
            on_change=self._on_change,
        )

    def _is_subscribed(self, name: str) -> bool:
        return self.naive[name].subscribers > 0

    def _on_change(self, topics: Topics) -> None:
        self.changes += 1

    def waiting(self, name: str) -> list[Message]:
        return [each for queue in self.queues for each in queue if each.channel == name]

    @rule(name=NAMES, copies=st.integers(0, QUEUES), is_kept=st.booleans())
    def publish(self, name: str, copies: int, is_kept: bool) -> None:
        message = Message(b"{}", channel=name)
        topic = self.topics.configure(self.topics.draft(name, ORDINARY_CONFIG))
        count_for(topic, message)
        naive = self.naive[name]
        naive.visible = True
        if is_kept:
            naive.history.append(message)
            topic.keep()
        for queue in self.queues[:copies]:
            queue.append(message)
        topic.refer(copies)

    @rule(name=NAMES)
    def publish_administratively(self, name: str) -> None:
        topic = self.topics.configure(self.topics.draft(name, KEEPS_FOR_EVER), anew=True)
        assert topic.config is KEEPS_FOR_EVER
        self.naive[name].visible = True

    @rule(name=NAMES)
    def subscribe(self, name: str) -> None:
        naive = self.naive[name]
        naive.subscribers += 1
        if naive.subscribers == 1:
            naive.visible = naive.visible or bool(self.waiting(name))
            self.topics.subscribe(name)

    @rule(name=NAMES)
    def unsubscribe(self, name: str) -> None:
        naive = self.naive[name]
        naive.subscribers = max(0, naive.subscribers - 1)
        if naive.subscribers == 0:
            self.topics.unsubscribe(name)

    @rule(place=st.integers(0, QUEUES - 1), count=st.integers(1, 3))
    def settle(self, place: int, count: int) -> None:
        queue = self.queues[place]
        gone, self.queues[place] = queue[:count], queue[count:]
        release(gone)

    @rule(place=st.integers(0, QUEUES - 1), other=st.integers(0, QUEUES - 1))
    def move(self, place: int, other: int) -> None:
        moved, self.queues[place] = self.queues[place], []
        release(moved)
        self.queues[other] += moved
        for message in moved:
            topic = topic_of(message)
            assert topic is not None
            topic.refer()

    @rule(name=NAMES)
    def expire_in_history(self, name: str) -> None:
        naive, topic = self.naive[name], self.topics.get(name)
        if topic is not None and naive.history:
            naive.history.pop(0)
            topic.forget()

    @rule(name=NAMES, is_forced=st.booleans())
    def erase(self, name: str, is_forced: bool) -> None:
        topic = self.topics.get(name)
        if topic is None:
            return
        naive, self.naive[name] = self.naive[name], Naive()
        if naive.subscribers:
            self.topics.unsubscribe(name)
        for _ in naive.history:
            topic.forget()
        if topic.state is not TopicState.DEAD:
            topic.erase(ErasureIds(1, 2), is_forced=False)
        if is_forced:
            waiting = self.waiting(name)
            for place, queue in enumerate(self.queues):
                self.queues[place] = [each for each in queue if each.channel != name]
            release(waiting)

    @rule(name=NAMES)
    def time_out(self, name: str) -> None:
        topic = self.topics.get(name)
        if topic is not None and topic.state is TopicState.UNREFERENCED:
            topic.time_out()
            self.naive[name] = Naive()

    @precondition(lambda self: self.changes)
    @rule()
    def end_turn(self) -> None:
        self.changes = 0
        changed = self.topics.take_changed()
        assert changed
        assert not any(topic.state is TopicState.DEAD for topic in self.topics)

    @invariant()
    def every_topic_has_the_state_of_its_conditions(self) -> None:
        for name, naive in self.naive.items():
            waiting = self.waiting(name)
            expected = state_of(
                is_configured=naive.visible,
                has_history=bool(naive.history),
                is_queued=bool(waiting),
                is_subscribed=naive.subscribers > 0,
            )
            topic = self.topics.get(name)
            assert (TopicState.DEAD if topic is None else topic.state) is expected
            assert (0 if topic is None else topic.queued) == len(waiting)

    @invariant()
    def the_sums_are_those_of_the_topics(self) -> None:
        for state in set(TopicState) - {TopicState.DEAD}:
            assert self.topics.states[state] == sum(each.state is state for each in self.topics)

    @invariant()
    def a_change_is_reported_once_a_turn(self) -> None:
        assert self.changes <= 1


@pytest.mark.slow
def test_every_topic_has_the_state_of_its_conditions() -> None:
    run_state_machine_as_test(TopicsMachine)


def topics(most: int = 10) -> Topics:
    def config_of(name: str) -> TopicConfig | None:
        return None if name == "/plain" else KEEPS_FOR_EVER

    return Topics(
        lambda _: False,
        config_of,
        most=most,
        makers=SenderQuota(0, 0),
        are_used=False,
        on_change=lambda changed: None,
    )


def test_a_subscription_to_an_ordinary_channel_makes_no_topic() -> None:
    known = topics()
    known.subscribe("/plain")
    known.unsubscribe("/plain")
    assert not known.are_used
    assert len(known) == 0


def test_a_topic_keeps_its_first_config_until_it_is_configured_anew() -> None:
    known = topics()
    first = known.configure(known.draft("/a", ORDINARY_CONFIG))
    assert known.configure(known.draft("/a", KEEPS_FOR_EVER)) is first
    assert first.config is ORDINARY_CONFIG
    known.configure(known.draft("/a", KEEPS_FOR_EVER), anew=True)
    assert first.config is KEEPS_FOR_EVER


def test_a_further_reference_to_an_alive_topic_is_no_change() -> None:
    known = topics()
    topic = known.configure(known.draft("/a", ORDINARY_CONFIG))
    topic.keep()
    known.take_changed()
    known.subscribe("/a")
    topic.refer()
    assert topic.is_subscribed
    assert not known.take_changed()


def test_a_further_message_of_an_alive_topic_is_no_change() -> None:
    known = topics()
    known.configure(known.draft("/a", ORDINARY_CONFIG)).keep()
    known.take_changed()
    topic = known.configure(known.draft("/a", KEEPS_FOR_EVER))
    topic.refer()
    topic.release()
    assert not known.take_changed()
    assert topic.config is ORDINARY_CONFIG
    known.configure(known.draft("/a", KEEPS_FOR_EVER), anew=True)
    assert known.take_changed() == [topic]


def test_a_record_that_another_publish_has_stored_is_looked_at() -> None:
    known = topics()
    topic = known.configure(known.draft("/a", KEEPS_FOR_EVER))
    topic.keep()
    known.take_changed()
    late = known.draft("/a", ORDINARY_CONFIG)
    late.stored = known.record_of_draft(late)
    known.configure(late)
    assert known.take_changed() == [topic]
    assert known.record(topic) != topic.stored


def test_the_last_record_in_the_store_is_the_one_that_is_looked_at() -> None:
    # Two publishes of other workers make the same topic: the store gets both records first.
    known = topics()
    drafts = [known.draft("/a", each) for each in (ORDINARY_CONFIG, TopicConfig(is_readonly=True))]
    records = [known.record_of_draft(each) for each in drafts]
    for draft, record in zip(drafts, records, strict=True):
        draft.stored = record
    topic, same = [known.configure(each) for each in drafts]
    topic.keep()
    assert same is topic
    assert known.take_changed() == [topic]
    assert topic.stored == records[1]
    assert known.record(topic) == records[0]


def test_an_erased_topic_takes_the_config_of_the_next_publish() -> None:
    known = topics()
    topic = known.configure(known.draft("/a", ORDINARY_CONFIG))
    topic.refer(1)
    topic.erase(ErasureIds(1, 2), is_forced=False)
    known.configure(known.draft("/a", KEEPS_FOR_EVER))
    assert topic.config is KEEPS_FOR_EVER


def test_topics_with_and_without_a_config_are_limited() -> None:
    known = topics(most=1)
    assert not known.are_full
    known.configure(known.draft("/a", ORDINARY_CONFIG))
    assert known.are_full
    known.subscribe("/b")
    known.subscribe("/c")
    assert known.get("/b") is not None
    assert known.get("/c") is None


def test_release_ignores_a_message_without_a_topic() -> None:
    message = Message(b"{}", channel="/plain")
    release([message])
    assert topic_of(message) is None
