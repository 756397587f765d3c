"""Messages to subjects of other shards arrive once, and get one reply."""

import pytest

from holdfast.bayeux.publish.channel_order import ChannelOrder, Turn
from holdfast.bayeux.server import far_parts_of
from holdfast.bayeux.wire.caller import Caller
from holdfast.cluster.frames import CALL, MESSAGE
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.journal.frame import decode
from holdfast.journal.schema import Kind
from holdfast.journal.unfold import unfold
from holdfast.journal.writer import JournalWriter
from tests.unit.bayeux.harness import Json
from tests.unit.bayeux.publish.addressing import (
    address,
    delay,
    forced,
    heard,
    named,
    reported,
    subscribed,
    to_all,
)
from tests.unit.bayeux.publish.shards import World
from tests.unit.extensions.delivering import connect
from tests.unit.journal.ledger import Shelf

NOW_NS = 1_700_000_000_000_000_000
UNKNOWN = "user.ptp.unknownDestination"


@pytest.fixture
def world() -> World:
    # ann and carl are at the second shard, bob and dan at the first one.
    return World(2)


def test_a_message_reaches_a_subject_of_another_shard(world: World) -> None:
    ann, writer = named(world, "ann/1"), world.client(0)
    asked = address(writer, "hello", "ann")
    assert asked.is_held
    world.read_all()
    reply = asked.reply
    assert reported(reply) == [("client/ann", "OK")]
    assert heard(ann) == ["hello"]
    assert [shard.server.balances() for shard in world.shards] == [True, True]


def test_the_event_and_the_reply_have_the_same_id_and_the_sender_is_named(world: World) -> None:
    ann, bob = named(world, "ann/1"), named(world, "bob/1")
    asked = address(bob, "hello", "ann/1", priority=7)
    world.read_all()
    bob.server.turn()
    [event] = connect(ann).events
    said = event["ext"]["delivery"]
    assert (said["sender"], said["priority"]) == ("client/bob/1", 7)
    assert said["id"] == asked.reply["ext"]["delivery"]["id"]


@pytest.mark.parametrize(
    ("destinations", "copies"),
    [
        # The call that stores it for bob has its publish.
        (["ann/1", "bob/1"], []),
        (["ann/1"], [0]),
        (["ann/1", "dan/1"], [0]),
        (["carl/1"], []),
    ],
    ids=["for all shards", "for another one", "not for one here", "for nobody"],
)
def test_the_journal_here_has_what_only_other_shards_take(
    destinations: list[str], copies: list[int]
) -> None:
    shelf = Shelf()
    writer = JournalWriter("here", shelf, now=0.0, now_ns=lambda: NOW_NS, origin="town")
    world = World(2, journal=writer)
    named(world, "ann/1"), named(world, "bob/1")
    address(world.client(0), "hello", *destinations)
    world.read_all()
    world.shards[0].server.turn()
    writer.flush(0.0)
    events = [event for frame in shelf.frames for event in unfold(decode(frame))]
    assert [each.copies for each in events if each.kind == Kind.PUBLISHED] == copies


def test_destinations_at_all_shards_get_one_reply_in_the_order_of_the_publish(
    world: World,
) -> None:
    clients = [named(world, name) for name in ("ann/1", "bob/1", "carl/1")]
    asked = address(world.client(0), "hello", "carl", "bob", "ann/1", "dan", "ed")
    world.read_all()
    world.shards[0].server.turn()
    assert reported(asked.reply) == [
        ("client/carl", "OK"),
        ("client/bob", "OK"),
        ("client/ann/1", "OK"),
        ("client/dan", UNKNOWN),
        ("client/ed", UNKNOWN),
    ]
    assert [heard(each) for each in clients] == [["hello"]] * 3


def test_a_message_that_no_destination_takes_is_refused_because_of_the_first(
    world: World,
) -> None:
    asked = address(world.client(0), "hello", "ann", "bob")
    world.read_all()
    world.shards[0].server.turn()
    assert asked.reply["error"] == f"404:{UNKNOWN},client/ann:destination_unknown"
    assert reported(asked.reply) == [("client/ann", UNKNOWN), ("client/bob", UNKNOWN)]


def test_a_message_can_wait_for_a_subject_of_another_shard(world: World) -> None:
    asked = address(world.client(0), "hello", forced("ann"))
    world.read_all()
    assert reported(asked.reply) == [("client/ann", "QUEUED")]
    assert heard(named(world, "ann/1")) == ["hello"]


def test_an_unknown_destination_may_be_ignored_elsewhere_too(world: World) -> None:
    asked = address(world.client(0), "hello", {"name": "ann", "ignoreSilently": True})
    world.read_all()
    assert reported(asked.reply) == [("client/ann", "IGNORED")]


def test_without_an_answer_the_outcome_is_unknown(world: World) -> None:
    ann, writer = named(world, "ann/1"), world.client(0)
    asked = address(writer, "hello", "ann")
    world.shards[0].sent.tick(writer.server.now + 5)
    writer.server.turn()
    assert asked.reply["error"] == "503:communication.noConnection,unknown:store_unavailable"
    world.read_all()
    assert heard(ann) == ["hello"]


def test_a_publish_is_refused_at_once_if_the_own_store_is_away(world: World) -> None:
    named(world, "ann/1")
    writer = world.client(0)
    world.shards[0].keeper.is_available = False
    asked = address(writer, "hello", "ann")
    assert asked.reply["error"] == "503:communication.noConnection:store_unavailable"
    assert world.shards[0].keeper.log == []


def test_a_store_elsewhere_that_refuses_the_message_is_reported(world: World) -> None:
    ann, bob, writer = named(world, "ann/1"), named(world, "bob/1"), world.client(0)
    world.shards[1].keeper.outcome = PersistOutcome.REFUSED
    asked = address(writer, "hello", "ann", "bob")
    alone = address(writer, "hello", "ann")
    world.read_all()
    world.shards[0].server.turn()
    assert reported(asked.reply) == [
        ("client/ann", "communication.noConnection"),
        ("client/bob", "OK"),
    ]
    assert alone.reply["error"] == "503:communication.noConnection:store_unavailable"
    assert (heard(ann), heard(bob)) == ([], ["hello"])
    assert world.shards[1].keeper.inbox == {}


def test_what_the_store_elsewhere_does_not_answer_is_answered_when_it_does(world: World) -> None:
    named(world, "ann/1")
    asked = address(world.client(0), "hello", "ann")
    shard = world.shards[1]
    shard.keeper.is_silent = True
    shard.read(0, 9)
    shard.keeper.answer_late(PersistOutcome.UNKNOWN)
    assert asked.is_held
    shard.keeper.answer_late(PersistOutcome.KEPT)
    world.read_all()
    assert reported(asked.reply) == [("client/ann", "OK")]


def test_a_repeated_publish_key_reaches_each_once_and_gets_the_first_reply(
    world: World,
) -> None:
    ann, bob = named(world, "ann/1"), named(world, "bob/1")
    replies = []
    for _ in range(2):
        asked = address(bob, "hello", "ann", "bob", key="k")
        world.read_all()
        bob.server.turn()
        replies.append(asked.reply["ext"]["delivery"])
    assert replies[0] == replies[1]
    assert (heard(ann), heard(bob)) == (["hello"], ["hello"])
    assert world.shards[0].server.bayeux.state.counters.repeated == 1


def test_a_key_may_be_used_again_after_a_refusal(world: World) -> None:
    bob = named(world, "bob/1")
    refused = address(bob, "hello", "ann", key="k")
    world.read_all()
    bob.server.turn()
    assert refused.reply["error"].startswith("404:")
    ann = named(world, "ann/1")
    address(bob, "hello", "ann", key="k")
    world.read_all()
    assert heard(ann) == ["hello"]


def test_a_delayed_message_reaches_a_subject_of_another_shard(world: World) -> None:
    ann, writer = named(world, "ann/1"), world.client(0)
    delay(writer, "ann")
    writer.server.advance(1.2)
    world.read_all()
    writer.server.advance(0.2)
    assert heard(ann) == ["hello"]
    assert not writer.server.bayeux.state.waiting_places.queues()


def test_a_delayed_message_that_no_destination_takes_becomes_a_dead_letter(world: World) -> None:
    writer = world.client(0)
    delay(writer, "ann")
    writer.server.advance(1.2)
    world.read_all()
    writer.server.advance(0.2)
    [letter] = world.shards[0].keeper.letters
    assert letter.code == "user.publish"


def test_a_sender_may_let_only_so_much_wait_elsewhere() -> None:
    world = World(2, quota_addressed=1)
    writer = world.client(0, caller=Caller(network="192.0.2.1"))
    first, second = [address(writer, number, forced("ann")) for number in (1, 2)]
    world.read_all()
    assert reported(first.reply) == [("client/ann", "QUEUED")]
    assert second.reply["error"] == "429:addressed:budget_exceeded"
    assert second.reply["advice"]["interval"] > 0
    assert reported(second.reply) == [("client/ann", "resource.exhaust")]


def test_subscribers_get_what_a_destination_elsewhere_takes_and_no_session_gets_it_twice(
    world: World,
) -> None:
    clients = [subscribed(world, name) for name in ("ann/1", "bob/1", "carl/1", "dan/1")]
    dora = named(world, "dora/1")
    asked = to_all(world.client(0), "hello", "ann", "dora")
    assert [heard(each) for each in clients] == [[]] * 4
    world.read_all()
    assert reported(asked.reply) == [("client/ann", "OK"), ("client/dora", "OK")]
    assert [heard(each) for each in [*clients, dora]] == [["hello"]] * 5
    assert all(shard.server.balances() for shard in world.shards)


def test_subscribers_do_not_get_what_no_destination_takes(world: World) -> None:
    bob = subscribed(world, "bob/1")
    asked = to_all(world.client(0), "hello", "ann", "dan")
    world.read_all()
    world.shards[0].server.turn()
    assert asked.reply["error"].startswith(f"404:{UNKNOWN},client/ann")
    assert reported(asked.reply) == [("client/ann", UNKNOWN), ("client/dan", UNKNOWN)]
    assert heard(bob) == []


def test_subscribers_get_what_only_a_destination_here_takes(world: World) -> None:
    bob, dan = subscribed(world, "bob/1"), named(world, "dan/1")
    asked = to_all(world.client(0), "hello", "ann", "dan")
    world.read_all()
    world.shards[0].server.turn()
    assert reported(asked.reply) == [("client/ann", UNKNOWN), ("client/dan", "OK")]
    assert heard(bob) == heard(dan) == ["hello"]


def test_later_messages_of_a_channel_wait_for_the_answers_of_other_shards(world: World) -> None:
    named(world, "ann/1")
    bob, writer = subscribed(world, "bob/1"), world.client(0)
    to_all(writer, 1, "ann")
    later = writer.publish("/news", 2)
    to_all(writer, 3, "bob")
    refused = to_all(writer, 4, "dan")
    to_all(writer, 5, "ann")
    other = writer.publish("/other", 6)
    writer.server.turn()
    assert (later.is_held, other.is_held, heard(bob)) == (True, False, [])
    world.read_all()
    writer.server.turn()
    assert later.reply["successful"]
    assert refused.reply["error"].startswith("404:")
    assert heard(bob) == [1, 2, 3, 5]
    among = far_parts_of(writer.server.bayeux).publishing
    assert not among._order.waiting


def test_what_is_unknown_elsewhere_is_not_shown_to_subscribers_before_it_is_repeated(
    world: World,
) -> None:
    ann, bob = subscribed(world, "ann/1"), subscribed(world, "bob/1")
    dan = named(world, "dan/1")
    lost = to_all(dan, "hello", "ann", key="k")
    world.shards[0].give_up()
    dan.server.turn()
    assert "unknown" in lost.reply["error"]
    again = to_all(dan, "hello", "ann", key="k")
    world.read_all()
    dan.server.turn()
    assert reported(again.reply) == [("client/ann", "OK")]
    assert (heard(ann), heard(bob)) == (["hello"], ["hello"])


def test_a_store_that_refuses_what_others_have_leaves_the_outcome_unknown(world: World) -> None:
    named(world, "ann/1")
    bob = subscribed(world, "bob/1")
    asked = to_all(world.client(0), "hello", "ann")
    world.shards[1].read(0, 9)
    world.shards[0].keeper.outcome = PersistOutcome.REFUSED
    world.read_all()
    world.shards[0].server.turn()
    assert "unknown" in asked.reply["error"]
    assert heard(bob) == []


def test_what_waits_behind_a_shard_that_does_not_answer_is_refused_unless_it_is_for_all(
    world: World,
) -> None:
    named(world, "ann/1")
    bob, writer = subscribed(world, "bob/1"), world.client(0)
    lost, refused = [to_all(writer, number, "ann") for number in (1, 2)]
    later = writer.publish("/news", 3)
    world.shards[0].give_up()
    writer.server.turn()
    assert "unknown" in lost.reply["error"]
    assert refused.reply["error"] == "503:communication.noConnection:store_unavailable"
    assert later.reply["successful"]
    assert heard(bob) == [3]


def test_a_call_follows_what_its_channel_is_storing(world: World) -> None:
    ann, writer = named(world, "ann/1"), world.client(0)
    bob, shard = subscribed(world, "bob/1"), world.shards[0]
    writer.publish("/news", 1)
    qos = {"destinations": ["ann"], "subscribable": False}
    asked = writer.publish("/news", 2, ext={"delivery": qos})
    assert [entry.kind for entry, _ in shard.keeper.log] == [MESSAGE]
    writer.server.turn()
    assert [entry.kind for entry, _ in shard.keeper.log] == [MESSAGE, CALL]
    world.read_all()
    assert reported(asked.reply) == [("client/ann", "OK")]
    assert (heard(ann), heard(bob)) == ([2], [1])


def test_a_publish_that_fails_does_not_keep_those_behind_it(world: World) -> None:
    done: list[str] = []

    def fail(_: Turn) -> bool:
        raise ValueError("it fails")

    def publish(_: Turn) -> bool:
        done.append("published")
        return True

    order = ChannelOrder(world.shards[0].server.bayeux.state)
    waiting = Turn("/news", lambda _: False)
    for turn in (waiting, Turn("/news", fail), Turn("/news", publish)):
        order.take(turn)
    assert done == []
    order.over(waiting)
    assert (done, order.waiting) == (["published"], {})


def test_an_answer_about_other_destinations_is_a_fault(world: World) -> None:
    named(world, "ann/1")
    asked = address(world.client(0), "hello", "ann")
    world.shards[1].read(0, 9)
    log = world.shards[1].keeper.log
    entry, shard = log[-1]
    log[-1] = entry._replace(data=entry.data.replace(b"client/ann", b"client/bob")), shard
    world.read_all()
    world.shards[0].server.turn()
    assert asked.reply["error"].startswith("500:")


def test_sessions_without_a_subject_have_different_names_and_are_found(world: World) -> None:
    guest, writer = world.client(0), world.client(1)
    assert guest.session.name != writer.session.name
    asked = address(writer, "hello", guest.session.name)
    world.read_all()
    assert reported(asked.reply) == [(guest.session.name, "OK")]
    assert guest.connect(advice={"timeout": 0}).data == ["hello"]


def test_a_name_that_no_shard_gave_is_unknown(world: World) -> None:
    asked = address(world.client(0), "hello", "client/anonymous/-1700000000000000777")
    assert asked.reply["error"].startswith("404:")


def test_a_call_that_cannot_be_read_is_answered(world: World) -> None:
    asked = address(world.client(0), "hello", "ann")
    entry, shard = world.shards[0].keeper.log[0]
    world.shards[0].keeper.log[0] = (entry._replace(channel="other"), shard)
    world.read_all()
    assert asked.reply["error"].startswith("500:")
    assert world.shards[1].keeper.inbox == {}


def test_a_session_that_a_message_creates_at_another_shard_counts_for_the_sender() -> None:
    # Each shard has its part of the limit.
    world = World(2, ptp_create_session=True, shards=2, quota_sessions=4)
    here = Caller(address="192.0.2.1", network="192.0.2.1")
    bob = named(world, "bob/1", here)

    def told(name: str) -> Json:
        asked = address(bob, 1, forced(name))
        world.read_all()
        bob.server.turn()
        return asked.reply

    for name in ("ann/1", "ann/2"):
        assert reported(told(name)) == [(f"client/{name}", "QUEUED")]
    assert told("eve/1")["error"] == "429:sessions:budget_exceeded"
    # From now on, it counts for its client.
    assert heard(named(world, "ann/1")) == [1]
    assert reported(told("eve/1")) == [("client/eve/1", "QUEUED")]
