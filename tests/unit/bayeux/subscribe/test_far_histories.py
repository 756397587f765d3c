"""Subscribes at one shard get the histories that others keep."""

from typing import Any

import pytest

from holdfast.bayeux.wire.operation import Operation
from holdfast.cluster.messages import message_of
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.settings import ChannelSettings
from tests.unit.bayeux.harness import Asked, Client, Json
from tests.unit.bayeux.publish.addressing import heard, named
from tests.unit.bayeux.publish.shards import World

# The homes of these are the second and the first of two shards.
NEWS, SPORT = "/home/a", "/home/b"
RULES = {"/home/**": ChannelSettings(history=100, history_bytes=100_000)}


@pytest.fixture
def world() -> World:
    return World(2, channels=RULES)


class Granted:
    """What a login may do on any channel."""

    def __init__(self, *operations: Operation) -> None:
        self.operations = operations

    def allows(self, operation: Operation, _: str) -> bool:
        return operation in self.operations


def say(world: World, channel: str, *said: Any) -> None:
    client = world.client(0)
    for each in said:
        client.publish(channel, each)
        client.server.turn()
    world.read_all()


def ask(client: Client, channel: Any, **ext: Any) -> Asked:
    asked = client.send({"channel": "/meta/subscribe", "subscription": channel, "ext": ext})
    client.server.turn()
    return asked


def told(asked: Asked) -> Json:
    [reply] = asked.replies
    return reply


def subscribed(world: World, client: Client, channel: Any, **ext: Any) -> tuple[Json, list[Any]]:
    """The reply, and the messages that came with it."""
    asked = ask(client, channel, **ext)
    world.read_all()
    client.server.turn()
    return told(asked), asked.data


def test_a_subscribe_gets_the_history_that_another_shard_keeps(world: World) -> None:
    say(world, NEWS, 1, 2, 3)
    client = world.client(0)
    reply, came = subscribed(world, client, NEWS, replay=-2)
    assert reply["successful"]
    assert reply["ext"]["replay"]["messages"] == 3
    say(world, NEWS, 4)
    assert came + heard(client) == [1, 2, 3, 4]


def test_what_is_published_meanwhile_comes_once_and_in_order(world: World) -> None:
    say(world, NEWS, 1, 2)
    client, writer = world.client(0), world.client(1)
    asked = ask(client, NEWS, replay=-2)
    writer.publish(NEWS, 3)
    writer.server.turn()
    world.shards[1].read(0, 100)
    writer.publish(NEWS, 4)
    writer.server.turn()
    world.read_all()
    assert asked.data == [1, 2, 3, 4]
    assert heard(client) == []


def test_a_pattern_reads_the_histories_of_all_homes(world: World) -> None:
    say(world, NEWS, 1)
    say(world, SPORT, 2)
    say(world, NEWS, 3)
    for pattern in ("/home/*", "/**"):
        reply, came = subscribed(world, world.client(0), pattern, replay=-2)
        assert came == [1, 2, 3]
        assert "lost" not in reply["ext"]["replay"]


def test_a_history_here_is_read_without_a_call(world: World) -> None:
    say(world, SPORT, 1)
    asked = ask(world.client(0), SPORT, replay=-2)
    assert asked.data == [1]


def test_a_subscribe_that_wants_no_old_messages_asks_nobody(world: World) -> None:
    say(world, NEWS, 1)
    assert told(ask(world.client(0), NEWS, replay=-1))["successful"]


def test_a_subscription_goes_on_behind_its_cursor(world: World) -> None:
    client = world.client(0)
    subscribed(world, client, NEWS, replay=-2)
    say(world, NEWS, 1, 2)
    events = client.connect(advice={"timeout": 0}).events
    assert [each["data"] for each in events] == [1, 2]
    cursor = events[0]["ext"]["replay"]
    reply, came = subscribed(world, world.client(0), NEWS, replay=cursor)
    assert came == [2]
    assert reply["ext"]["replay"]["recovered"]


def test_the_reply_says_what_the_home_has_no_more() -> None:
    world = World(2, channels={"/home/**": ChannelSettings(history=2, history_bytes=100_000)})
    say(world, NEWS, 1, 2, 3)
    reply, came = subscribed(world, world.client(0), NEWS, replay=1)
    assert came == [2, 3]
    assert reply["ext"]["replay"]["lost"][NEWS]["from"] == 1


def test_channels_may_have_separate_starts(world: World) -> None:
    say(world, NEWS, 1, 2)
    say(world, SPORT, 3, 4)
    replay = {NEWS: -2, "/home/none": -2}
    assert subscribed(world, world.client(0), "/home/*", replay=replay)[1] == [1, 2]
    assert subscribed(world, world.client(0), NEWS, replay={NEWS: -2, SPORT: -2})[1] == [1, 2]


def test_the_newest_messages_are_read_too(world: World) -> None:
    say(world, NEWS, 1, 2, 3)
    history = {"history": {"numEntries": 2, "newestFirst": False}}
    assert subscribed(world, world.client(0), NEWS, delivery=history)[1] == [2, 3]


def test_a_filter_selects_also_what_comes_meanwhile(world: World) -> None:
    say(world, NEWS, {"n": 1}, {"n": 2})
    client, writer = world.client(0), world.client(1)
    asked = ask(client, NEWS, replay=-2, delivery={"filter": "data.n > 1"})
    for number in (1, 3):
        writer.publish(NEWS, {"n": number})
        writer.server.turn()
    world.read_all()
    assert [each["n"] for each in asked.data] == [2, 3]


def test_a_cursor_passes_nothing_that_another_shard_may_still_send(world: World) -> None:
    client = world.client(0)
    subscribed(world, client, "/home/*", replay=-2)
    world.client(1).publish(NEWS, 1)
    world.shards[1].server.turn()
    [unread] = world.shards[1].server.bayeux.state.histories
    # It is a message of this shard that makes the cursor rise.
    world.client(0).publish(SPORT, 2)
    world.shards[0].server.turn()
    replies = [client.connect(advice={"timeout": 0}).replies[0] for _ in range(2)]
    cursors = [each["ext"]["replay"]["cursor"] for each in replies]
    assert all(each < unread.id // 1000 for each in cursors)
    world.read_all()
    assert heard(client) == [1]
    last = client.connect(advice={"timeout": 0}).replies[0]
    assert last["ext"]["replay"]["cursor"] >= unread.id // 1000


def test_a_shard_that_knows_nothing_of_another_yet_gives_no_cursor(world: World) -> None:
    client = world.client(0)
    assert told(ask(client, NEWS, replay=-1))["successful"]
    world.shards[0].complete.clear()
    # The other one has not said how far it is.
    reply = client.connect(advice={"timeout": 0}).replies[0]
    assert "ext" not in reply
    world.read_all()
    reply = client.connect(advice={"timeout": 0}).replies[0]
    assert reply["ext"]["replay"]["cursor"] > 0


def test_a_long_history_comes_in_parts(world: World) -> None:
    text = "x" * 10_000
    world = World(2, channels={"/home/**": ChannelSettings(history=100, history_bytes=10_000_000)})
    say(world, NEWS, *[[number, text] for number in range(45)])
    asked = ask(world.client(0), NEWS, replay=-2)
    for _ in range(3):
        world.read_all()
    assert [number for number, _ in asked.data] == [*range(45)]
    answers = [entry for entry, shard in world.shards[1].keeper.log if shard == 0]
    assert max(len(each.data) for each in answers) < 256 * 1024


def test_a_home_that_ends_between_two_parts_is_unavailable() -> None:
    world = World(2, channels={"/home/**": ChannelSettings(history=100, history_bytes=10_000_000)})
    say(world, NEWS, *["x" * 100_000 for number in range(5)])
    client = world.client(0)
    asked = ask(client, NEWS, replay=-2)
    world.shards[1].read(0, 100)
    world.shards[1].kill()
    world.read_all()
    assert told(asked)["error"] == "503:resource.cluster.notAvailable:shard_unavailable"
    assert not client.session.subscriptions


def test_a_part_that_is_asked_for_too_late_is_unavailable() -> None:
    world = World(2, channels={"/home/**": ChannelSettings(history=100, history_bytes=10_000_000)})
    say(world, NEWS, *["x" * 100_000 for number in range(5)])
    asked = ask(world.client(0), NEWS, replay=-2)
    world.shards[1].read(0, 100)
    world.shards[1].server.advance(10.5)
    world.read_all()
    assert told(asked)["error"].startswith("503:")


@pytest.mark.parametrize("session", [None, "bob/1"])
def test_without_an_answer_of_the_home_nothing_is_subscribed(
    world: World, session: str | None
) -> None:
    client = world.client(0) if session is None else named(world, session)
    asked = ask(client, NEWS, replay=-2)
    world.shards[0].give_up()
    client.server.turn()
    assert told(asked)["error"] == "503:resource.cluster.notAvailable:shard_unavailable"
    assert not client.session.subscriptions
    # An answer that comes later changes nothing.
    world.read_all()
    assert not client.session.subscriptions


def test_a_store_that_is_away_cannot_ask(world: World) -> None:
    client = world.client(0)
    world.shards[0].keeper.is_available = False
    assert told(ask(client, NEWS, replay=-2))["error"].startswith("503:")


def test_frames_that_are_missing_may_have_had_messages_of_the_history(world: World) -> None:
    asked = ask(world.client(0), NEWS, replay=-2)
    world.shards[0].missing[1] = 1
    world.read_all()
    assert told(asked)["error"].startswith("503:")


def test_an_unreadable_call_or_answer_is_unavailable(world: World) -> None:
    asked = [ask(world.client(0), NEWS, replay=-2) for _ in range(2)]
    log = world.shards[0].keeper.log
    log[-1] = (log[-1][0]._replace(data=b"?"), 1)
    world.shards[1].read(0, 100)
    log = world.shards[1].keeper.log
    place = next(at for at, (entry, _) in enumerate(log) if b"has_cursor" in entry.data)
    log[place] = (log[place][0]._replace(data=b"?"), 0)
    world.read_all()
    assert [told(each)["error"][:4] for each in asked] == ["503:", "503:"]


def test_some_subscribes_read_at_a_time_and_others_wait(world: World) -> None:
    say(world, NEWS, 1)
    asked = [ask(world.client(0), NEWS, replay=-2) for _ in range(40)]
    calls = [entry for entry, shard in world.shards[0].keeper.log if shard == 1]
    assert len([each for each in calls if each.channel == "histories"]) == 16
    for _ in range(3):
        world.read_all()
    assert [each.data for each in asked] == [[1]] * 40


def test_a_session_that_ends_meanwhile_is_not_subscribed(world: World) -> None:
    client = world.client(0)
    ask(client, NEWS, replay=-2)
    client.send({"channel": "/meta/disconnect"})
    client.server.turn()
    world.read_all()
    assert NEWS not in client.server.bayeux.state.routes


def test_a_session_without_the_right_makes_no_shard_read(world: World) -> None:
    client = world.client(0)
    client.session.identity.grants = Granted(Operation.SUBSCRIBE, Operation.CREATE)
    client.server.bayeux.state.rights.require_login()
    assert told(ask(client, NEWS, replay=-2))["error"].startswith("403:")


def test_events_of_histories_elsewhere_have_cursors(world: World) -> None:
    client = world.client(0)
    subscribed(world, client, NEWS, replay=-1)
    say(world, NEWS, 1)
    [event] = client.connect(advice={"timeout": 0}).events
    [kept] = world.shards[1].server.bayeux.state.histories
    assert event["ext"]["replay"]["cursor"] == kept.id // 1000


@pytest.mark.parametrize("session", [None, "bob/1"])
def test_a_message_that_waits_for_the_store_here_comes_once(
    world: World, session: str | None
) -> None:
    """Its receivers were chosen before the session had subscribed."""
    client = world.client(0) if session is None else named(world, session)
    asked = ask(client, NEWS, replay=-2)
    world.shards[1].read(0, 100)
    say_there(world, 1)
    [(answer, _), (message, _)] = world.shards[1].keeper.log[-2:]
    others = world.shards[0].from_others
    arrived = others.arrived(message_of(message), is_durable=True)
    assert arrived is not None
    world.shards[0].sent.answered(answer)
    client.server.turn()
    assert told(asked)["successful"]
    others.show(arrived)
    client.server.turn()
    assert heard(client) == [1]
    keeper = world.shards[0].keeper
    assert (message.id in keeper.bodies) == (session is not None)


def say_there(world: World, *said: Any) -> None:
    client = world.client(1)
    for each in said:
        client.publish(NEWS, each)
        client.server.turn()


def test_the_home_answers_with_what_is_stored_and_waits_for_replicas(world: World) -> None:
    home, reader = world.shards[1], world.shards[0]
    home.keeper.is_silent = True
    writer = world.client(1)
    writer.publish(NEWS, 1, ext={"delivery": {"persistent": True}})
    writer.server.turn()
    # The other shard has shown it before it subscribes.
    reader.read(1, 100)
    client = world.client(0)
    asked = ask(client, NEWS, replay=-2)
    world.read_all()
    assert asked.wire.elements is None
    home.keeper.answer_late(PersistOutcome.KEPT)
    writer.server.turn()
    world.read_all()
    assert told(asked)["successful"]
    assert asked.data == [1]
