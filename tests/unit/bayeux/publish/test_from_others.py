"""What one shard accepts reaches receivers at all others, once and in each publisher's order."""

from collections import defaultdict
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.cluster.frames import MESSAGE, FrameUnreadable, LogEntry
from holdfast.cluster.messages import HAS_EXTRA, entry_of, message_of
from holdfast.delivery.letters.exempt import leaves_no_letter
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.storing import PersistOutcome
from tests.effort import TIMES
from tests.unit.bayeux.harness import Asked, Client
from tests.unit.bayeux.publish.shards import World


def named(name: str) -> dict[str, Any]:
    return {"delivery": {"session": {"name": f"{name}/1", "timeout": 60_000}}, "ack": True}


@pytest.fixture
def world() -> World:
    return World(2)


def heard(client: Client) -> list[Any]:
    asked = client.connect(advice={"timeout": 0})
    client.server.turn()
    return asked.data


def test_a_passing_message_reaches_subscribers_of_another_shard(world: World) -> None:
    reader, writer = world.client(1), world.client(0)
    reader.subscribe("/news")
    writer.publish("/news", "hello")
    assert heard(reader) == []
    world.read_all()
    assert heard(reader) == ["hello"]
    # The other shard has accepted none.
    assert [each.server.bayeux.state.hub.counters.published for each in world.shards] == [1, 0]


def test_a_message_is_stored_if_only_another_shard_has_durable_receivers(world: World) -> None:
    reader, writer = world.client(1, ext=named("joe")), world.client(0)
    reader.subscribe("/news")
    writer.publish("/news", "hello")
    [(id, _)] = world.shards[0].keeper.bodies.items()
    world.read_all()
    assert heard(reader) == ["hello"]
    assert [*world.shards[1].keeper.queues["joe/1"]] == [id]


def test_a_store_that_refuses_a_message_keeps_it_from_other_shards(world: World) -> None:
    reader, writer = world.client(1, ext=named("joe")), world.client(0)
    reader.subscribe("/news")
    world.shards[0].keeper.is_available = False
    asked = writer.publish("/news", "hello")
    world.shards[0].server.turn()
    assert asked.reply["error"].startswith("503:")
    world.read_all()
    assert heard(reader) == []


def test_a_publisher_who_wants_nothing_stored_reaches_durable_receivers_too(world: World) -> None:
    reader, writer = world.client(1, ext=named("joe")), world.client(0, ext={"delivery": {}})
    reader.subscribe("/news")
    writer.publish("/news", "hello", ext={"delivery": {"persistent": False}})
    assert world.shards[0].keeper.bodies == {}
    world.read_all()
    assert heard(reader) == ["hello"]
    assert world.shards[1].keeper.bodies == {}


def test_filters_of_another_shard_apply(world: World) -> None:
    reader, writer = world.client(1, ext={"delivery": {}}), world.client(0)
    reader.send(
        {
            "channel": "/meta/subscribe",
            "subscription": "/news",
            "ext": {"delivery": {"filter": "data.size > 3"}},
        }
    )
    for size in (1, 5):
        writer.publish("/news", {"size": size})
    world.read_all()
    assert heard(reader) == [{"size": 5}]


def test_what_has_no_receivers_elsewhere_changes_nothing_there(world: World) -> None:
    world.client(0).publish("/news", "hello")
    world.read_all()
    assert world.shards[1].server.bayeux.state.hub.counters.published == 0


def test_a_message_that_has_arrived_is_not_passed_on_again(world: World) -> None:
    world.client(1).subscribe("/news")
    world.client(0).publish("/news", "hello")
    world.read_all()
    assert [len(each.keeper.log) for each in world.shards] == [1, 0]


def test_priorities_and_lifetimes_cross(world: World) -> None:
    reader, writer = world.client(1, ext={"delivery": {}}), world.client(0, ext={"delivery": {}})
    reader.subscribe("/news")
    writer.publish("/news", "low", ext={"delivery": {"priority": 1}})
    writer.publish("/news", "high", ext={"delivery": {"priority": 9}})
    writer.publish(
        "/news", "late", ext={"delivery": {"expiration": {"lifeTime": 10, "forceDestroy": True}}}
    )
    world.read_all()
    world.shards[1].server.advance(0.5)
    assert heard(reader) == ["high", "low"]


def test_a_passing_message_between_stored_ones_stays_there(world: World) -> None:
    stored = world.client(1, ext=named("joe"))
    stored.subscribe("/news")
    writer = world.client(0, ext={"delivery": {}})
    passing = {"ext": {"delivery": {"persistent": False}}}
    writer.publish("/news", 1)
    writer.publish("/news", 2, **passing)
    writer.publish("/news", 3)
    world.shards[0].server.turn()
    world.read_all()
    assert heard(stored) == [1, 2, 3]


def test_a_passing_message_crosses_even_if_the_stored_one_behind_it_is_refused(
    world: World,
) -> None:
    stored = world.client(1, ext=named("joe"))
    stored.subscribe("/news")
    writer = world.client(0, ext={"delivery": {}})
    passing = {"ext": {"delivery": {"persistent": False}}}
    writer.publish("/news", 1)
    writer.publish("/news", 2, **passing)
    world.shards[0].keeper.outcome = PersistOutcome.REFUSED
    asked = writer.publish("/news", 3)
    world.shards[0].server.turn()
    assert asked.reply["error"].startswith("503:")
    world.read_all()
    assert heard(stored) == [1, 2]


def test_messages_for_a_subject_alone_do_not_cross(world: World) -> None:
    writer = world.client(0, ext={"delivery": {}})
    writer.publish("/news", "hello", ext={"delivery": {"destinations": ["joe"]}})
    assert world.shards[0].keeper.log == []


CHANNELS = ["/a", "/b", "/c/d"]
PATTERNS = ["/a", "/b", "/*", "/**", "/c/*"]
STEPS = st.one_of(
    st.tuples(st.just("subscribe"), st.integers(0, 4), st.sampled_from(PATTERNS)),
    st.tuples(st.just("publish"), st.integers(0, 4), st.sampled_from(CHANNELS), st.booleans()),
    st.tuples(st.just("read"), st.integers(0, 2), st.integers(0, 2), st.integers(1, 3)),
    st.tuples(st.just("connect"), st.integers(0, 4)),
)


class Person:
    """A client, what it must hear, and what it has heard."""

    def __init__(self, world: World, number: int) -> None:
        self.shard = number % 3
        ext = named(f"n{number}") if number < 3 else None
        self.client = world.client(self.shard, ext=ext)
        self.patterns: set[str] = set()
        # The last batch.
        self.ack = 0
        # By publisher and channel: numbers, and those before the subscription.
        self.due: dict[tuple[int, str], list[int]] = defaultdict(list)
        self.heard: dict[tuple[int, str], list[int]] = defaultdict(list)

    def matches(self, channel: str) -> bool:
        stem = channel.rpartition("/")[0]
        return bool(self.patterns & {channel, f"{stem}/*", "/**"})

    def listen(self) -> None:
        asked = self.client.connect(advice={"timeout": 0}, ext={"ack": self.ack})
        self.client.server.turn()
        self.hear(asked)

    def hear(self, asked: Asked) -> None:
        for publisher, channel, number in asked.data:
            self.heard[publisher, channel].append(number)
        for reply in asked.replies:
            self.ack = reply.get("ext", {}).get("ack", self.ack)


class Play:
    """Plays steps at three shards with five people."""

    def __init__(self) -> None:
        self.world = World(3)
        self.people = [Person(self.world, number) for number in range(5)]
        self.published = 0

    def subscribe(self, number: int, pattern: str) -> None:
        person = self.people[number]
        asked = person.client.subscribe(pattern)
        person.client.server.turn()
        # Events travel with any reply.
        person.hear(asked)
        person.patterns.add(pattern)

    def publish(self, publisher: int, channel: str, is_kept: bool) -> None:
        self.published += 1
        fields = {} if is_kept else {"ext": {"delivery": {"persistent": False}}}
        client = self.people[publisher].client
        asked = client.publish(channel, [publisher, channel, self.published], **fields)
        client.server.turn()
        self.people[publisher].hear(asked)
        for person in self.people:
            if person.matches(channel):
                person.due[publisher, channel].append(self.published)

    def read(self, reader: int, writer: int, most: int) -> None:
        if reader != writer:
            self.world.shards[reader].read(writer, most)

    def connect(self, number: int) -> None:
        self.people[number].listen()

    def end(self) -> None:
        self.world.read_all()
        for person in self.people:
            for _ in range(3):
                person.listen()
            for key in {*person.due, *person.heard}:
                due, got = person.due[key], person.heard[key]
                # It may also hear what was on its way when it subscribed.
                assert got == sorted(set(got))
                assert got[len(got) - len(due) :] == due
        assert all(shard.server.balances() for shard in self.world.shards)


@pytest.mark.slow
@given(st.lists(STEPS, max_size=40))
@settings(max_examples=40 * TIMES)
def test_everybody_hears_everything_once_and_in_order(steps: list[Any]) -> None:
    play = Play()
    for kind, *args in steps:
        getattr(play, kind)(*args)
    play.end()


MESSAGES = st.builds(
    lambda wire, priority, life, properties, addressed: _message(
        wire, priority, life, properties, addressed
    ),
    st.binary(max_size=30),
    st.integers(0, 9),
    st.none() | st.integers(0, 10_000),
    st.none() | st.dictionaries(st.text(max_size=3), st.integers(-9, 9), max_size=2),
    st.lists(st.sampled_from(["joe", "joe/1"]), max_size=2),
)


def _message(wire: bytes, priority: int, life: int | None, properties: Any, to: Any) -> Message:
    message = Message(wire, id=5_000_000_000, channel="/a", sender="ann/1")
    message.priority, message.properties, message.addressed = priority, properties, tuple(to)
    if life is not None:
        message.limit_life(life, is_forced=bool(life % 2))
    return message


@pytest.mark.slow
@given(MESSAGES)
def test_a_message_is_the_same_behind_the_log(message: Message) -> None:
    arrived = message_of(entry_of(message))
    for name in ("wire", "id", "channel", "sender", "priority", "life_ms", "expires_ms"):
        assert getattr(arrived, name) == getattr(message, name)
    assert (arrived.properties, arrived.addressed) == (message.properties, message.addressed)


@given(st.binary(max_size=60))
def test_an_unreadable_entry_is_refused(data: bytes) -> None:
    entry = LogEntry(MESSAGE, "/a", 1, "", HAS_EXTRA, data)
    with suppress(FrameUnreadable):
        assert message_of(entry).id == 1


def listening(world: World, shard: int, channel: str) -> Client:
    """A client of a shard that listens to a channel of the servers."""
    client = world.client(shard)
    state = client.server.bayeux.state
    state.hub.subscribe(client.session, state.channels.named(channel))
    client.session.subscriptions.add(channel)
    return client


def test_events_of_a_server_reach_listeners_of_others_and_say_which_it_is(world: World) -> None:
    listener = listening(world, 1, "/sys/alert")
    state = world.shards[0].server.bayeux.state
    state.system_events.publish({"channel": "/sys/alert", "data": {"kind": "k"}})
    world.read_all()
    assert heard(listener) == [{"kind": "k", "shard": 0}]


def test_an_event_of_another_server_leaves_no_letter(world: World) -> None:
    listening(world, 1, "/sys/alert")
    state = world.shards[0].server.bayeux.state
    state.system_events.publish({"channel": "/sys/alert", "data": {}})
    [(entry, _)] = world.shards[0].keeper.log
    arrived = world.shards[1].from_others.arrived(message_of(entry), is_durable=False)
    assert arrived is not None
    assert leaves_no_letter(arrived.message)


def test_events_of_a_server_stay_there_if_nobody_listens_elsewhere(world: World) -> None:
    world.client(1).subscribe("/**")
    state = world.shards[0].server.bayeux.state
    state.system_events.publish({"channel": "/sys/alert", "data": {}})
    assert world.shards[0].keeper.log == []
    gone = listening(world, 1, "/sys/*")
    gone.disconnect()
    state.system_events.publish({"channel": "/sys/alert", "data": {}})
    assert world.shards[0].keeper.log == []
