"""Messages to subjects of other shards: once, whoever is killed, with one reply."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.bayeux.wire.caller import Caller
from holdfast.bayeux.wire.options import QuotaLimits
from holdfast.delivery.messages.storing import PersistOutcome
from tests.unit.bayeux.harness import Asked, Client, Json
from tests.unit.bayeux.publish.shards import World
from tests.unit.extensions.delivering import connect

UNKNOWN = "user.ptp.unknownDestination"


@pytest.fixture
def world() -> World:
    # ann and carl are at the second shard, bob and dan at the first one.
    return World(2)


def named(world: World, name: str) -> Client:
    """A client with this session, at its home."""
    server = world.shards[world.home_of(name)].server
    client = server.guest()
    client.handshake(ext={"ack": True, "delivery": {"session": name}})
    server.turn()
    return client


def heard(client: Client) -> list[Any]:
    """All that waits for a client; everything is acked."""
    found: list[Any] = []
    while True:
        asked = connect(client)
        client.server.turn()
        if not asked.data:
            return found
        found += asked.data


def address(client: Client, data: object, *destinations: Any, **delivery: Any) -> Asked:
    fields = {"ext": {"delivery": delivery}} if delivery else {}
    content = {"destinations": list(destinations), "content": data}
    asked = client.publish("/service/ptp", content, **fields)
    client.server.turn()
    return asked


def reported(reply: Json) -> list[tuple[str, str]]:
    found = reply["ext"]["delivery"]["destinations"]
    return [(each["name"], each.get("errorCode", each["state"])) for each in found]


def delay(writer: Client, to: str, **delivery: Any) -> Asked:
    qos = {"delay": 1000, "destinations": [to], "subscribable": False, **delivery}
    asked = writer.publish("/news", "hello", ext={"delivery": qos})
    writer.server.turn()
    return asked


def forced(name: str) -> Json:
    return {"name": name, "forceQueuing": True}


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


def test_a_repeated_publish_key_reaches_nobody_twice_and_gets_the_first_reply(
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
    world = World(2, quotas=QuotaLimits(addressed=1))
    writer = world.client(0, caller=Caller(network="192.0.2.1"))
    first, second = [address(writer, number, forced("ann")) for number in (1, 2)]
    world.read_all()
    assert reported(first.reply) == [("client/ann", "QUEUED")]
    assert second.reply["error"] == "429:addressed:budget_exceeded"
    assert second.reply["advice"]["interval"] > 0
    assert reported(second.reply) == [("client/ann", "resource.exhaust")]


def test_subscribers_cannot_get_what_goes_to_another_shard_too(world: World) -> None:
    named(world, "ann/1")
    asked = world.client(0).publish("/news", 1, ext={"delivery": {"destinations": ["ann"]}})
    assert "ext.delivery.subscribable" in asked.reply["error"]
    asked = delay(world.client(0), "ann", subscribable=True)
    assert "ext.delivery.subscribable" in asked.reply["error"]


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


def test_a_letter_that_cannot_be_read_is_answered(world: World) -> None:
    asked = address(world.client(0), "hello", "ann")
    entry, shard = world.shards[0].keeper.log[0]
    world.shards[0].keeper.log[0] = (entry._replace(channel="other"), shard)
    world.read_all()
    assert asked.reply["error"].startswith("500:")
    assert world.shards[1].keeper.inbox == {}


PEOPLE = ["ann/1", "bob/1", "carl/1"]
STEPS = st.one_of(
    st.tuples(
        st.just("publish"),
        st.sampled_from(PEOPLE),
        st.lists(
            st.sampled_from(["ann", "bob/1", "carl", "dora", "ann/1"]), min_size=1, max_size=3
        ),
        st.booleans(),
    ),
    st.tuples(st.just("read"), st.integers(0, 2), st.integers(0, 2), st.integers(1, 3)),
    st.tuples(st.just("listen"), st.sampled_from(PEOPLE)),
    st.tuples(st.just("give_up"), st.integers(0, 2)),
    st.tuples(st.just("kill"), st.integers(0, 2)),
    st.tuples(st.just("pause"), st.integers(0, 2)),
)


class Play:
    """Three people at three shards address each other, and repeat what has no outcome."""

    def __init__(self) -> None:
        self.world = World(3)
        self.clients = {name: named(self.world, name) for name in PEOPLE}
        self.heard: dict[str, list[int]] = {name: [] for name in PEOPLE}
        # What was published: by whom, to whom, whether with a key, and the reply if it came.
        self.asked: list[tuple[str, list[Any], bool, Asked]] = []

    def publish(self, sender: str, names: list[str], is_keyed: bool) -> None:
        # Nobody is called dora, but messages may wait.
        to = [forced(name) if name == "dora" else name for name in dict.fromkeys(names)]
        self._send(sender, to, len(self.asked), is_keyed)

    def _send(self, sender: str, to: list[Any], number: int, is_keyed: bool) -> None:
        qos = {"key": str(number)} if is_keyed else {"priority": 5}
        content = {"destinations": to, "content": number}
        client = self.clients[sender]
        asked = client.publish("/service/ptp", content, ext={"delivery": qos})
        client.server.turn()
        self.asked[number:] = [(sender, to, is_keyed, asked), *self.asked[number + 1 :]]

    def read(self, reader: int, writer: int, most: int) -> None:
        if reader != writer:
            self.world.shards[reader].read(writer, most)

    def listen(self, name: str) -> None:
        self.heard[name] += heard(self.clients[name])

    def give_up(self, shard: int) -> None:
        self.world.shards[shard].sent.give_up()
        self.world.shards[shard].server.turn()

    def kill(self, shard: int) -> None:
        for name in PEOPLE:
            if self.world.home_of(name) == shard:
                # Replies that came are noted, and all that was heard is acked.
                self.listen(name)
        self.world.shards[shard].kill()
        for name in PEOPLE:
            if self.world.home_of(name) == shard:
                self.clients[name] = named(self.world, name)

    def pause(self, shard: int) -> None:
        """Let the store of a shard refuse messages until the next pause."""
        keeper = self.world.shards[shard].keeper
        is_open = keeper.outcome is PersistOutcome.KEPT
        keeper.outcome = PersistOutcome.REFUSED if is_open else PersistOutcome.KEPT

    def outcome(self, number: int) -> Json | None:
        """The reply, if there is one and the outcome is known."""
        asked = self.asked[number][3]
        if asked.is_held:
            return None
        [reply] = [each for each in asked.replies if each["channel"] == "/service/ptp"]
        return None if "unknown:" in reply.get("error", "") else reply

    def end(self) -> None:
        for shard in self.world.shards:
            shard.keeper.outcome = PersistOutcome.KEPT
        self.world.read_all()
        for number, (sender, to, is_keyed, _) in enumerate([*self.asked]):
            if is_keyed and self.outcome(number) is None:
                self._send(sender, to, number, is_keyed)
        self.world.read_all()
        for name in PEOPLE:
            self.listen(name)
        for number in range(len(self.asked)):
            self._check(number)
        for shard in self.world.shards:
            assert shard.server.balances()
            assert shard.keeper.inbox == {}
            assert len(shard.inbox) == len(shard.sent) == 0

    def _check(self, number: int) -> None:
        _, to, is_keyed, _ = self.asked[number]
        reply = self.outcome(number)
        assert reply is not None or not is_keyed
        got = Counter(name for name in PEOPLE for each in self.heard[name] if each == number)
        subjects = {each.partition("/")[0] for each in to if isinstance(each, str)}
        assert got.keys() <= {f"{each}/1" for each in subjects}
        if reply is None:
            # Without a key, the publisher does not repeat it: each destination may have it.
            assert max(got.values(), default=0) <= 1
            return
        found = reported(reply) if "ext" in reply else []
        reports = {name.removeprefix("client/"): state for name, state in found}
        for person in PEOPLE:
            subject = person.partition("/")[0]
            taken = [reports.get(name) == "OK" for name in (person, subject)]
            assert got[person] == any(taken)


@pytest.mark.slow
@given(st.lists(STEPS, max_size=40))
@settings(max_examples=300)
def test_every_destination_gets_what_the_reply_says_once(steps: list[Any]) -> None:
    play = Play()
    for kind, *args in steps:
        getattr(play, kind)(*args)
    play.end()
