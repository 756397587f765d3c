"""The home of a channel decides about its topic, for the sessions of all shards."""

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.bayeux.services.far_topics import ERASE, FarTopics
from holdfast.bayeux.wire.caller import Caller
from holdfast.delivery.messages.keeping import HistoryDepth
from holdfast.delivery.messages.shard_call import NO_ANSWER
from holdfast.delivery.topics.configured import Topic, TopicConfig
from holdfast.delivery.topics.states import TopicState
from holdfast.settings import ChannelSettings
from tests.unit.bayeux.far_work.working import balances, fetch, is_done, put, taker, working
from tests.unit.bayeux.harness import Client, Json
from tests.unit.bayeux.publish.addressing import heard, named
from tests.unit.bayeux.publish.asking import asking, comes, guest
from tests.unit.bayeux.publish.shards import World
from tests.unit.bayeux.services.test_far_presence import settled
from tests.unit.bayeux.services.test_topics_everywhere import answered, ask
from tests.unit.extensions.delivering import connect

# Its home is the second of two or three shards.
TOPIC, HOME = "/home/a", 1
AWAY = "resource.cluster.notAvailable"


def rules(delay_ms: int = 1000, **options: Any) -> dict[str, ChannelSettings]:
    return {"/home/**": ChannelSettings(topic=True, destroy_delay=delay_ms, **options)}


@pytest.fixture
def world() -> World:
    world = World(3, channels=rules())
    settled(world)
    return world


def topic(world: World, name: str = TOPIC) -> Topic | None:
    return world.shards[HOME].server.bayeux.state.topics.get(name)


def state(world: World, name: str = TOPIC) -> TopicState:
    found = topic(world, name)
    return TopicState.DEAD if found is None else found.state


def say(world: World, data: object, channel: str = TOPIC, **delivery: Any) -> Json:
    """A client of the third shard publishes."""
    client = named(world, "eve/1") if delivery else world.client(2)
    fields = {"ext": {"delivery": delivery}} if delivery else {}
    asked = client.publish(channel, data, **fields)
    client.server.turn()
    world.read_all()
    client.server.turn()
    return asked.reply


def pass_time(world: World, seconds: float) -> None:
    """Let time pass at all shards alike."""
    for _ in range(round(seconds / 0.25)):
        settled(world, 0.25)


def events(client: Client) -> list[Json]:
    """All that waits for a client; everything is acked."""
    found: list[Json] = []
    while True:
        asked = connect(client)
        client.server.turn()
        if not asked.data:
            return found
        found += [each for each in asked.events if "data" in each]


def test_a_subscription_at_another_shard_makes_a_topic_and_keeps_it(world: World) -> None:
    ann = named(world, "carl/1")
    ann.subscribe(TOPIC)
    settled(world)
    assert state(world) is TopicState.UNCONFIGURED
    say(world, 1)
    assert state(world) is TopicState.ALIVE
    pass_time(world, 3)
    assert heard(ann) == [1]
    assert state(world) is TopicState.ALIVE
    ann.send({"channel": "/meta/unsubscribe", "subscription": TOPIC})
    settled(world)
    assert state(world) is TopicState.UNREFERENCED
    pass_time(world, 2)
    assert topic(world) is None


def test_a_message_in_a_queue_of_another_shard_keeps_a_topic(world: World) -> None:
    ann = named(world, "carl/1")
    ann.subscribe("/home/*")
    say(world, 1)
    pass_time(world, 3)
    assert state(world) is TopicState.ALIVE
    assert ask(world, world.client(2), state=TOPIC)["queued"] == 1
    assert heard(ann) == [1]
    pass_time(world, 3)
    assert topic(world) is None


def test_a_topic_does_not_end_before_all_shards_have_said_that_they_do_not_use_it() -> None:
    world = World(3, channels=rules(delay_ms=0))
    settled(world)
    carl = named(world, "carl/1")
    carl.subscribe("/home/*")
    client = world.client(2)
    client.publish(TOPIC, 1)
    client.server.turn()
    home = world.shards[HOME]
    home.read(2, 10)
    assert state(world) is TopicState.UNREFERENCED
    # The third shard says nothing.
    world.shards[0].read(1, 10)
    home.read(0, 10)
    home.give_up()
    home.server.turn()
    home.server.advance(0.5)
    assert state(world) is TopicState.UNREFERENCED
    settled(world, 2)
    assert state(world) is TopicState.ALIVE
    heard(carl)
    pass_time(world, 2)
    assert topic(world) is None


def test_nobody_is_asked_while_a_shard_cannot_be_reached(world: World) -> None:
    say(world, 1)
    home = world.shards[HOME]
    home.away = {0}
    home.server.advance(1.2)
    before = len(home.keeper.log)
    for _ in range(5):
        home.server.advance(1.2)
    assert len(home.keeper.log) == before
    assert state(world) is TopicState.UNREFERENCED
    home.away = set()
    pass_time(world, 2)
    assert topic(world) is None


def test_a_publish_in_the_meantime_keeps_the_topic(world: World) -> None:
    say(world, 1)
    home = world.shards[HOME]
    home.server.advance(1.2)
    asked = len(home.keeper.log)
    assert asked
    say(world, 2)
    assert state(world) is TopicState.UNREFERENCED
    settled(world)
    assert state(world) is TopicState.UNREFERENCED
    pass_time(world, 3)
    assert topic(world) is None


@pytest.mark.parametrize("shard", [0, 1, 2])
def test_any_shard_answers_with_the_state_of_a_topic(world: World, shard: int) -> None:
    carl, dan = named(world, "carl/1"), named(world, "dan/1")
    for client in (carl, dan):
        client.subscribe(TOPIC)
    say(world, 1)
    settled(world)
    answer = ask(world, world.client(shard), state=TOPIC)
    assert (answer["state"], answer["subscribers"], answer["queued"]) == ("ALIVE", 2, 2)
    answer = ask(world, world.client(shard), state="/home/d")
    assert (answer["code"], answer["message"]) == ("user.oid.unknown", "/home/d is not a topic")


def test_a_client_sees_in_the_state_what_it_has_done(world: World) -> None:
    dan = named(world, "dan/1")
    dan.subscribe(TOPIC)
    assert ask(world, dan, state=TOPIC)["state"] == "UNCONFIGURED"


@pytest.mark.parametrize("shard", [0, 1, 2])
def test_any_shard_lists_the_topics_of_all_page_by_page(world: World, shard: int) -> None:
    names = [f"/home/{letter}" for letter in "abcdefg"]
    for name in names:
        say(world, 1, name)
    client, found, after = world.client(shard), list[str](), ""
    while True:
        page = ask(world, client, list="/home/*", limit=3, after=after)
        assert len(page["topics"]) <= 3
        found += [each["channel"] for each in page["topics"]]
        if page["next"] is None:
            break
        after = page["next"]
    assert found == names


@pytest.mark.parametrize("shard", [0, 1, 2])
def test_any_shard_erases_the_topics_of_all(world: World, shard: int) -> None:
    clients = [named(world, name) for name in ("ann/1", "bob/1", "carl/1")]
    for client, name in zip(clients, ("/home/*", TOPIC, TOPIC), strict=True):
        client.subscribe(name)
    for name in (TOPIC, "/home/b", "/home/c"):
        say(world, 1, name)
    settled(world)
    asker = world.client(shard)
    answer = ask(world, asker, erase="/home/*", limit=2)
    assert (answer["erased"], answer["next"]) == ([TOPIC, "/home/b"], "/home/b")
    for client, lost in zip(clients, ("/home/*", TOPIC, TOPIC), strict=True):
        ends = [each["ext"]["delivery"] for each in events(client) if each["data"] is None]
        assert (ends[0]["state"], ends[0].get("subscription")) == ("ERASED", lost)
    assert clients[2].session.subscriptions == set()
    settled(world)
    assert [topic(world, name) for name in (TOPIC, "/home/b")] == [None, None]
    names = [each["channel"] for each in ask(world, asker, list="/home/**")["topics"]]
    assert names == ["/home/c"]


@pytest.mark.parametrize("is_forced", [False, True])
def test_messages_that_wait_at_another_shard_outlive_a_soft_erasure(
    world: World, is_forced: bool
) -> None:
    carl = named(world, "carl/1")
    carl.subscribe(TOPIC)
    say(world, 1)
    assert ask(world, world.client(0), erase=TOPIC, forceDestroy=is_forced)["successful"]
    settled(world)
    assert state(world) is (TopicState.DEAD if is_forced else TopicState.SOFTERASED)
    found = events(carl)
    assert [each["data"] for each in found] == ([None] if is_forced else [1, None])
    settled(world)
    assert topic(world) is None


def test_what_is_published_behind_an_erasure_begins_a_new_topic(world: World) -> None:
    carl, dan = named(world, "carl/1"), named(world, "dan/1")
    carl.subscribe(TOPIC)
    dan.subscribe("/home/*")
    say(world, 1)
    ann = world.client(1)
    ann.publish("/service/topics", {"erase": TOPIC})
    ann.publish(TOPIC, 2)
    ann.server.turn()
    settled(world)
    assert [each["data"] for each in events(carl)] == [1, None]
    assert [each["data"] for each in events(dan)] == [1, None, 2]


@pytest.mark.parametrize("pattern", [TOPIC, "/home/*"])
def test_an_erasure_has_one_id_for_the_sessions_of_all_shards(world: World, pattern: str) -> None:
    clients = [named(world, name) for name in ("ann/1", "bob/1", "carl/1")]
    for client in clients:
        client.subscribe(pattern)
    say(world, 1)
    assert ask(world, world.client(0), erase=TOPIC)["successful"]
    settled(world)
    found = [events(each)[-1] for each in clients]
    assert [each["data"] for each in found] == [None, None, None]
    ids = {each["ext"]["delivery"]["id"] for each in found}
    assert len(ids) == 1
    assert int(ids.pop().rpartition("-")[2]) % 1000 == HOME


@pytest.mark.parametrize("is_behind", [False, True])
def test_an_erasure_stays_behind_what_came_before_when_a_queue_is_loaded(
    world: World, is_behind: bool
) -> None:
    carl = named(world, "carl/1")
    carl.subscribe("/home/*")
    carl.subscribe(TOPIC)
    home, far = world.shards[HOME].server, world.shards[world.home_of("carl")]
    # Its messages so far have later ids than those that follow.
    say(world, 1)
    (home if is_behind else far.server).set_clock_back(3600.0)
    assert ask(world, world.client(0), erase=TOPIC)["successful"]
    say(world, 2)
    settled(world)
    far.kill()
    carl = named(world, "carl/1")
    assert [each["data"] for each in events(carl)] == [1, None, 2]


def test_what_a_shard_told_before_an_erasure_holds_no_more(world: World) -> None:
    carl = named(world, "carl/1")
    carl.subscribe(TOPIC)
    say(world, 1)
    settled(world)
    carl.subscribe("/home/*")
    named(world, "fay/1").subscribe(TOPIC)
    home = world.shards[HOME]
    world.shards[0].server.advance(0.2)
    home.server.client().publish("/service/topics", {"erase": TOPIC})
    home.server.turn()
    # It says that there are two subscribers.
    home.read(0, 100)
    assert state(world) is TopicState.SOFTERASED
    settled(world)
    assert state(world) is TopicState.SOFTERASED


def test_a_subscription_behind_an_erasure_holds(world: World) -> None:
    carl = named(world, "carl/1")
    carl.subscribe(TOPIC)
    say(world, 1)
    heard(carl)
    settled(world)
    home = world.shards[HOME]
    home.server.client().publish("/service/topics", {"erase": TOPIC})
    home.server.turn()
    assert state(world) is TopicState.DEAD
    # What it has told before is not true any more.
    world.shards[0].read(1, 10)
    carl.subscribe(TOPIC)
    settled(world)
    assert TOPIC in carl.session.subscriptions
    assert state(world) is TopicState.UNCONFIGURED


def test_a_session_that_was_away_hears_which_subscription_it_has_lost(world: World) -> None:
    named(world, "carl/1").subscribe(TOPIC)
    say(world, 1)
    world.shards[0].kill()
    ask(world, world.client(0), erase=TOPIC)
    carl = world.shards[0].server.guest()
    reply = carl.handshake(ext={"ack": True, "delivery": {"session": "carl/1"}}).reply
    assert reply["ext"]["delivery"]["lostSubscriptions"] == [TOPIC]


def test_an_erasure_says_when_a_shard_does_not_answer(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(world, 1)
    client = world.client(HOME)
    asked = client.publish("/service/topics", {"erase": TOPIC})
    client.server.turn()
    world.shards[HOME].give_up()
    assert answered(world, client, asked)["code"] == AWAY
    say(world, 1)
    monkeypatch.setattr(world.shards[HOME], "may_send", lambda _: False)
    assert ask(world, client, erase=TOPIC)["code"] == AWAY
    assert state(world) is not TopicState.DEAD


def test_subscriptions_that_an_erasure_does_not_reach_go_on_counting(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    carl = named(world, "carl/1")
    carl.subscribe(TOPIC)
    say(world, 1)
    heard(carl)
    settled(world)
    home, lost = world.shards[HOME], list[Callable[[None], None]]()
    # The store has no room for calls.
    monkeypatch.setattr(home, "send", lambda *words: lost.append(words[-1]))
    client = world.client(HOME)
    asked = client.publish("/service/topics", {"erase": TOPIC})
    client.server.turn()
    monkeypatch.undo()
    assert state(world) is TopicState.DEAD
    for done in lost:
        done(None)
    assert answered(world, client, asked)["code"] == AWAY
    assert state(world) is TopicState.UNCONFIGURED
    assert ask(world, client, state=TOPIC)["subscribers"] == 1
    ask(world, client, erase=TOPIC)
    assert state(world) is TopicState.DEAD
    assert carl.session.subscriptions == set()


def test_a_shard_that_is_killed_tells_the_home_again_what_it_has(world: World) -> None:
    named(world, "carl/1").subscribe(TOPIC)
    say(world, 1)
    for shard in (0, HOME):
        world.shards[shard].kill()
        pass_time(world, 3)
        assert state(world) is TopicState.ALIVE
        answer = ask(world, world.client(2), state=TOPIC)
        assert (answer["queued"], answer["subscribers"]) == (1, 1)


def test_an_erased_topic_stays_erased_when_its_home_is_killed(world: World) -> None:
    carl = named(world, "carl/1")
    carl.subscribe(TOPIC)
    say(world, 1)
    ask(world, world.client(0), erase=TOPIC)
    world.shards[HOME].kill()
    for _ in range(2):
        settled(world)
        assert state(world) is TopicState.SOFTERASED
    events(carl)
    settled(world)
    assert topic(world) is None


def test_what_a_history_brings_to_another_shard_counts_as_well() -> None:
    world = World(3, channels=rules(history=10))
    settled(world)
    say(world, 1)
    carl = named(world, "carl/1")
    carl.send({"channel": "/meta/subscribe", "subscription": TOPIC, "ext": {"replay": -2}})
    world.read_all()
    carl.server.turn()
    settled(world)
    found = ask(world, world.client(2), state=TOPIC)
    assert (found["kept"], found["queued"]) == (1, 1)
    ask(world, world.client(2), erase=TOPIC, forceDestroy=True)
    settled(world)
    assert [each["data"] for each in events(carl)] == [None]
    assert topic(world) is None


@pytest.mark.parametrize("is_forced", [False, True])
@pytest.mark.parametrize("name", ["carl/1", "bob/1"])
def test_a_work_queue_keeps_its_topic_wherever_its_work_is_done(name: str, is_forced: bool) -> None:
    world = working(3, channels=rules(work_queue=True))
    carl = taker(world, name)
    put(world, 2, 1, 2)
    assert fetch(world, carl).data == [1, 2]
    status = ask(world, world.client(2), state=TOPIC)
    assert (status["queued"], status["work"], status["subscribers"]) == (2, 2, 1)
    assert ask(world, world.client(0), erase=TOPIC, forceDestroy=is_forced)["successful"]
    settled(world)
    assert state(world) is (TopicState.DEAD if is_forced else TopicState.SOFTERASED)
    assert fetch(world, carl).data == [None]
    assert fetch(world, carl).data == []
    settled(world)
    assert topic(world) is None
    assert is_done(world)
    assert balances(world)


@pytest.mark.parametrize("requester", [0, HOME, 2])
def test_a_request_does_not_concern_the_topic(requester: int) -> None:
    world = asking(3, channels=rules())
    settled(world)
    people = [comes(world, name) for name in ("carl/1", "bob/1")]
    for person in people:
        person.subscribe("/home/*")
    guest(world, requester).ask(channel=TOPIC)
    settled(world)
    assert [person.session.queue.count for person in people] == [1, 1]
    assert topic(world) is None


@pytest.mark.slow
def test_a_shard_forgets_topics_of_which_it_has_nothing(world: World) -> None:
    carl = named(world, "carl/1")
    for number in range(3):
        carl.subscribe(f"/home/a{number}")
        carl.send({"channel": "/meta/unsubscribe", "subscription": f"/home/a{number}"})
    carl.subscribe(TOPIC)
    elsewhere = world.shards[0].server.bayeux.state.topics.elsewhere
    assert isinstance(elsewhere, FarTopics)
    assert len(elsewhere) == 4
    for _ in range(3):
        settled(world, 61)
    assert len(elsewhere) == 1


def test_calls_that_cannot_be_done_are_answered(world: World) -> None:
    home, far = world.shards[HOME], world.shards[0]
    answers: list[bytes | None] = []
    data = b'{"name":"/news","erased_at":1,"is_forced":false}'
    home.send(0, ERASE, data, answers.append)
    far.read(HOME, 10)
    home.read(0, 10)
    assert answers == [NO_ANSWER]


def test_publishers_elsewhere_have_a_quota_of_topics() -> None:
    world = World(3, channels=rules(), quota_topics=1)
    settled(world)
    network = Caller(network="10.0.0.0/24")
    for name, error in ((TOPIC, ""), ("/home/d", "429:topics:budget_exceeded")):
        client = named(world, "eve/1", network)
        asked = client.publish(name, 1)
        client.server.turn()
        world.read_all()
        client.server.turn()
        assert asked.reply.get("error", "") == error


def test_publishers_configure_topics_from_any_shard(world: World) -> None:
    options = {"destroyDelay": -1, "readonly": True, "history": {"maxEntries": 1}}
    reply = say(world, 1, administrative=True, topic=options)
    assert reply["successful"]
    found = topic(world)
    assert found is not None
    assert found.config == TopicConfig(-1, True, HistoryDepth(1, found.config.depth.bytes))  # type: ignore[union-attr]
    assert say(world, 1)["successful"]
    assert say(world, 2)["error"] == f"403:user.publish.readonly,{TOPIC}:topic_readonly"


@pytest.mark.parametrize("name", ["ann/1", "bob/1", "carl/1"])
@pytest.mark.parametrize("is_subscribable", [True, False])
def test_messages_for_destinations_configure_topics_and_keep_them(
    world: World, name: str, is_subscribable: bool
) -> None:
    receiver = named(world, name)
    qos: Json = {"destinations": [name], "subscribable": is_subscribable}
    assert say(world, 1, topic={"destroyDelay": 500}, **qos)["successful"]
    pass_time(world, 2)
    found = topic(world)
    assert found is not None
    assert found.config.destroy_delay_ms == 500
    assert state(world) is TopicState.ALIVE
    assert heard(receiver) == [1]
    pass_time(world, 2)
    assert topic(world) is None


def test_a_readonly_topic_refuses_messages_for_destinations(world: World) -> None:
    named(world, "bob/1").subscribe(TOPIC)
    options = {"readonly": True, "history": {"maxEntries": 1}}
    assert say(world, 1, topic=options)["successful"]
    error = say(world, 2, destinations=["bob"])["error"]
    assert error == f"403:user.publish.readonly,{TOPIC}:topic_readonly"


def test_messages_for_destinations_alone_do_not_make_topics(world: World) -> None:
    for name in ("bob/1", "eve/1"):
        client = named(world, name)
        qos = {"destinations": ["bob"], "subscribable": False}
        client.publish(TOPIC, 1, ext={"delivery": qos})
        client.server.turn()
        settled(world)
    assert topic(world) is None


def test_shards_that_have_told_everything_are_still(world: World) -> None:
    named(world, "carl/1").subscribe(TOPIC)
    say(world, 1)
    settled(world)
    before = [len(shard.keeper.log) for shard in world.shards]
    for _ in range(5):
        settled(world, 1.0)
    assert [len(shard.keeper.log) for shard in world.shards] == before


def test_without_topics_shards_tell_nothing() -> None:
    world = World(2)
    settled(world)
    world.client(0).subscribe(TOPIC)
    settled(world)
    assert [len(shard.keeper.log) for shard in world.shards] == [0, 0]
