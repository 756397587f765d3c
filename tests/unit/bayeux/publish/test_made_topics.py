"""A publish makes a topic of a channel without a rule, for the clients of all shards."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.delivery.topics.configured import Topic
from holdfast.delivery.topics.states import TopicState
from tests.unit.bayeux.harness import Asked, Client, Json
from tests.unit.bayeux.publish.addressing import heard, named
from tests.unit.bayeux.publish.asking import asking, comes
from tests.unit.bayeux.publish.shards import World
from tests.unit.bayeux.services.test_far_presence import settled
from tests.unit.bayeux.services.test_topics_everywhere import ask, numbers

# Its home is the second of three shards, once it is a topic.
TOPIC, HOME = "/a/b", 1
# A session at each shard.
NAMES = ("carl/1", "ann/1", "eve/1")
AWAY = "503:resource.cluster.notAvailable:shard_unavailable"
KEEPING = {"destroyDelay": -1, "history": {"maxEntries": 10}}

Done = Callable[[PersistOutcome], None]


@pytest.fixture
def world() -> World:
    world = World(3)
    settled(world)
    return world


def begin(client: Client, data: object, **delivery: Any) -> Asked:
    fields = {"ext": {"delivery": delivery}} if delivery else {}
    asked = client.publish(TOPIC, data, **fields)
    client.server.turn()
    return asked


def say(world: World, client: Client, data: object, **delivery: Any) -> Json:
    asked = begin(client, data, **delivery)
    settled(world)
    client.server.turn()
    return asked.reply


def topic(world: World) -> Topic | None:
    return world.shards[HOME].server.bayeux.state.topics.get(TOPIC)


def state(world: World) -> TopicState:
    found = topic(world)
    return TopicState.DEAD if found is None else found.state


def kept(world: World, shard: int) -> list[Any]:
    found = ask(world, world.client(shard), get=TOPIC, history={"numEntries": -1})
    return numbers(found)[::-1]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("administrative", [False, True])
def test_the_home_of_the_channel_has_the_topic(
    world: World, name: str, administrative: bool
) -> None:
    reply = say(world, named(world, name), 1, topic=KEEPING, administrative=administrative)
    assert reply["successful"]
    found = topic(world)
    assert found is not None
    assert found.config.destroy_delay_ms == -1
    assert [len(shard.server.bayeux.state.topics) for shard in world.shards] == [0, 1, 0]
    for shard in range(3):
        assert kept(world, shard) == ([] if administrative else [1])
        assert ask(world, world.client(shard), state=TOPIC)["channel"] == TOPIC


def test_from_then_on_publishes_at_any_shard_go_to_the_home(world: World) -> None:
    clients = [named(world, name) for name in NAMES]
    listener = named(world, "dora/1")
    listener.subscribe(TOPIC)
    assert say(world, clients[2], 0, topic=KEEPING)["successful"]
    for number, client in enumerate(clients, 1):
        assert say(world, client, number)["successful"]
    assert kept(world, 0) == [0, 1, 2, 3]
    assert heard(listener) == [0, 1, 2, 3]
    order = {"readonly": True}
    assert say(world, clients[0], None, topic=order, administrative=True)["successful"]
    for client in clients:
        assert say(world, client, 9)["error"] == f"403:user.publish.readonly,{TOPIC}:topic_readonly"


def test_other_channels_stay_without_a_home(world: World) -> None:
    say(world, named(world, "eve/1"), 0, topic=KEEPING)
    client = world.client(2)
    before = len(world.shards[HOME].keeper.log)
    client.publish("/a/c", 1)
    client.server.turn()
    settled(world)
    assert len(world.shards[HOME].keeper.log) == before


def test_a_subscription_of_before_keeps_the_topic(world: World) -> None:
    carl = named(world, "carl/1")
    carl.subscribe(TOPIC)
    say(world, named(world, "eve/1"), 1, topic={"destroyDelay": 0})
    assert state(world) is TopicState.ALIVE
    assert heard(carl) == [1]
    settled(world)
    assert state(world) is TopicState.ALIVE
    carl.send({"channel": "/meta/unsubscribe", "subscription": TOPIC})
    settled(world)
    settled(world)
    assert topic(world) is None


def test_an_entry_in_a_queue_elsewhere_keeps_the_topic_also_after_a_kill(world: World) -> None:
    named(world, "carl/1").subscribe("/a/*")
    say(world, named(world, "eve/1"), 1, topic={"destroyDelay": 0})
    for killed in (0, HOME):
        world.shards[killed].kill()
        settled(world)
        assert state(world) is TopicState.ALIVE
        found = ask(world, world.client(2), state=TOPIC)
        assert found["queued"] == 1
    assert heard(named(world, "carl/1")) == [1]
    settled(world)
    settled(world)
    assert topic(world) is None


def test_a_topic_is_erased_everywhere(world: World) -> None:
    carl = named(world, "carl/1")
    carl.subscribe(TOPIC)
    say(world, named(world, "eve/1"), 1, topic=KEEPING)
    assert ask(world, world.client(2), erase=TOPIC, forceDestroy=True)["erased"] == [TOPIC]
    settled(world)
    assert topic(world) is None
    assert not world.shards[0].server.bayeux.state.routes.subscribers(TOPIC)
    assert kept(world, 0) == []


@pytest.mark.parametrize("name", NAMES)
def test_messages_of_before_come_before_it(world: World, name: str) -> None:
    """Others follow when all shards have what was published before."""
    client, listener = named(world, name), world.client(1)
    listener.subscribe(TOPIC)
    shard = world.shards[world.home_of(name)]
    begin(client, 0)
    shard.is_agreeing = False
    asked = begin(client, 1, topic=KEEPING)
    later = begin(client, 2)
    assert asked.is_held
    assert later.is_held
    shard.is_agreeing = True
    for done in shard.unknown:
        done(True)
    shard.server.turn()
    settled(world)
    shard.server.turn()
    assert asked.reply["successful"]
    assert later.reply["successful"]
    events = listener.connect(advice={"timeout": 0}).events
    assert [each["data"] for each in events] == [0, 1, 2]
    assert kept(world, 0) == [1, 2]


def test_another_shard_sends_to_the_home_when_others_have_what_it_published(world: World) -> None:
    client, shard = named(world, "carl/1"), world.shards[0]
    begin(client, 0)
    assert say(world, named(world, "eve/1"), 1, topic=KEEPING)["successful"]
    shard.is_agreeing = False
    asked = begin(client, 2)
    assert asked.is_held
    for done in shard.unknown:
        done(True)
    shard.is_agreeing = True
    settled(world)
    shard.server.turn()
    assert asked.reply["successful"]
    assert kept(world, 2) == [1, 2]


@pytest.mark.parametrize("name", NAMES)
def test_without_an_answer_of_all_shards_no_topic_is_made(world: World, name: str) -> None:
    client = named(world, name)
    shard = world.shards[world.home_of(name)]
    shard.is_agreeing = False
    all_asked = [begin(client, 1, topic=KEEPING), begin(client, 2)]
    for done in shard.unknown:
        done(False)
    shard.server.turn()
    assert [each.reply["error"] for each in all_asked] == [AWAY, AWAY]
    shard.is_agreeing = True
    settled(world)
    assert topic(world) is None
    assert say(world, client, 3, topic=KEEPING)["successful"]
    assert kept(world, 0) == [3]


@pytest.mark.parametrize("name", NAMES)
def test_a_repeat_of_a_message_of_before_the_topic_is_one(world: World, name: str) -> None:
    client, other = named(world, name), named(world, "dan/1")
    first = say(world, client, 1, key="k")
    assert say(world, other, 2, topic=KEEPING)["successful"]
    for options in ({}, {"topic": KEEPING}):
        repeat = say(world, client, 1, key="k", **options)
        assert repeat["successful"]
        assert repeat["ext"] == first["ext"]
    assert say(world, client, 3, key="l")["ext"] == say(world, client, 3, key="l")["ext"]
    assert kept(world, 0) == [2, 3]
    world.shards[world.home_of(name)].keeper.is_available = False
    refused = say(world, client, 4, key="m")
    assert refused["error"] == "503:communication.noConnection:store_unavailable"


@pytest.mark.slow
def test_a_channel_loses_its_home_a_while_after_the_topic_has_ended(world: World) -> None:
    say(world, named(world, "eve/1"), 1, topic=KEEPING)
    for _ in range(4):
        settled(world, 61)
    assert world.shards[0].is_topic(TOPIC)
    assert topic(world) is not None
    assert ask(world, world.client(2), erase=TOPIC)["erased"] == [TOPIC]
    settled(world)
    assert world.shards[0].is_topic(TOPIC)
    for _ in range(4):
        settled(world, 61)
    assert not world.shards[0].is_topic(TOPIC)
    # It can be made once more.
    assert say(world, named(world, "carl/1"), 2, topic=KEEPING)["successful"]
    assert kept(world, 2) == [2]


@pytest.mark.slow
def test_a_channel_that_becomes_a_topic_again_does_so_behind_what_came_between(
    world: World,
) -> None:
    carl, shard = named(world, "carl/1"), world.shards[0]
    say(world, named(world, "eve/1"), 1, topic=KEEPING)
    for _ in range(3):
        settled(world, 61)
    assert ask(world, world.client(2), erase=TOPIC)["erased"] == [TOPIC]
    while world.shards[0].is_topic(TOPIC):
        world.shards[HOME].server.advance(61)
        world.shards[2].server.advance(61)
    begin(carl, 2)
    assert say(world, named(world, "eve/1"), 3, topic=KEEPING)["successful"]
    shard.is_agreeing = False
    assert begin(carl, 4).is_held
    assert shard.unknown


def test_a_repeat_after_a_kill_goes_to_the_home_that_has_not_taken_the_first(world: World) -> None:
    listener = named(world, "eve/1")
    listener.send({"channel": "/meta/subscribe", "subscription": TOPIC})
    settled(world)
    client = named(world, "carl/1")
    begin(client, 1, topic=KEEPING, key="k")
    client.server.turn()
    world.shards[0].kill()
    again = named(world, "carl/1")
    asked = begin(again, 1, key="k")
    settled(world)
    again.server.turn()
    assert asked.reply["successful"]
    listener.server.turn()
    events = listener.connect(advice={"timeout": 0}).events
    assert [each["data"] for each in events] == [1]
    assert kept(world, 0) == [1]


@pytest.mark.parametrize("killed", [0, HOME, 2])
def test_a_killed_shard_knows_the_topic_again(world: World, killed: int) -> None:
    say(world, named(world, "eve/1"), 1, topic=KEEPING, persistent=True)
    world.shards[killed].kill()
    settled(world)
    for number, name in enumerate(NAMES, 2):
        assert say(world, named(world, name), number, persistent=True)["successful"]
    assert kept(world, 2) == [1, 2, 3, 4]


@pytest.mark.parametrize("stored", [(False, True), (True, False), (False, False)])
def test_a_topic_is_stored_with_one_of_the_messages_that_make_it(
    world: World, monkeypatch: pytest.MonkeyPatch, stored: tuple[bool, bool]
) -> None:
    keeper = world.shards[HOME].keeper
    keep, waiting = keeper.keep, list[Callable[[], None]]()

    def keep_later(
        message: Message, receivers: Sequence[str], done: Done, *more: Any, **brought: Any
    ) -> None:
        waiting.append(lambda: keep(message, receivers, done, *more, **brought))

    monkeypatch.setattr(keeper, "keep", keep_later)
    for name in ("carl/1", "eve/1"):
        begin(named(world, name), 1, topic=KEEPING, persistent=True)
    settled(world)
    assert len(waiting) == 2
    for each, is_stored in zip(waiting, stored, strict=True):
        keeper.outcome = PersistOutcome.KEPT if is_stored else PersistOutcome.REFUSED
        each()
        settled(world)
    assert set(keeper.topics) == ({TOPIC} if any(stored) else set())


@pytest.mark.parametrize("name", NAMES)
def test_the_number_of_topics_is_limited(name: str) -> None:
    world = World(3, max_topics=1)
    settled(world)
    client = named(world, name)
    assert say(world, client, 1, topic=KEEPING)["successful"]
    asked = client.publish("/a/c", 1, ext={"delivery": {"topic": KEEPING}})
    settled(world)
    client.server.turn()
    assert asked.reply["error"] == "503:resource.exhaust,/a/c:topics_used_up"


def test_a_client_of_another_shard_reads_the_history_and_goes_on(world: World) -> None:
    say(world, named(world, "eve/1"), 1, topic=KEEPING)
    carl = named(world, "carl/1")
    asked = carl.send({"channel": "/meta/subscribe", "subscription": TOPIC, "ext": {"replay": -2}})
    settled(world)
    carl.server.turn()
    assert asked.reply["successful"]
    say(world, named(world, "eve/1"), 2)
    assert heard(carl) == [1, 2]


@pytest.mark.parametrize("name", NAMES)
def test_a_request_makes_a_topic_and_does_not_concern_it(name: str) -> None:
    world = asking(3)
    settled(world)
    dora = comes(world, "dora/1")
    dora.subscribe(TOPIC)
    settled(world)
    asker = comes(world, name)
    ext = {"replyTo": asker.address(), "timeout": 5000, "delivery": {"topic": KEEPING}}
    asker.publish(TOPIC, "who?", ext=ext)
    settled(world)
    asker.server.turn()
    [reply] = [each for each in asker.hear() if each["channel"] == TOPIC]
    assert reply["successful"]
    assert state(world) is TopicState.ALIVE
    assert kept(world, 0) == []
    dora.server.turn()
    assert [each["data"] for each in dora.heard()] == ["who?"]
