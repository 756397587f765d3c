"""A shard among others: what one accepts reaches receivers at all, whatever fails."""

from collections.abc import Callable, Mapping
from unittest.mock import patch

import pytest

from holdfast.bayeux.publish.made_topics import MadeTopics
from holdfast.bayeux.server import far_parts_of
from holdfast.cluster.calls import call, done_with
from holdfast.cluster.frames import read, write
from holdfast.cluster.messages import entry_of
from holdfast.cluster.places import NOWHERE, Place, place_of
from holdfast.cluster.reader_port import Gap, Sorted
from holdfast.delivery.basics.channels import HELD_ROW
from holdfast.delivery.messages.crossing import Answered, Crossings
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.shard_call import ShardCall
from holdfast.sharding.arrivals import Arrivals
from holdfast.sharding.direct import DirectArrivals
from holdfast.sharding.followed import Followed
from holdfast.sharding.kept_first import KeptFirst
from holdfast.sharding.known import KnownFacts
from holdfast.sharding.member import Member
from holdfast.sharding.other_shards import OtherShards
from holdfast.sharding.own_rows import OwnRows
from holdfast.sharding.pruning import Pruning
from holdfast.store.format.log_scripts import Parts
from tests.effort import TIMES
from tests.unit.sharding.member_world import Shard, World

pytestmark = pytest.mark.untraced


@pytest.mark.slow
def test_everybody_hears_everything_in_order_if_nothing_fails() -> None:
    for seed in range(5):
        World(seed, has_faults=False).run()


def left_by(shard: Shard) -> Mapping[int, str]:
    """What it says for the next process about the logs of others."""
    return shard.member.shown.left(shard.member.readers)


def test_a_process_that_goes_on_begins_where_the_one_before_had_shown_logs() -> None:
    world = World(1, has_faults=False)
    world.run(100)
    first = world.shards[0]
    place = place_of(left_by(first)[1])
    assert place.n > 1
    # Its store could not take the last of it.
    taken = place._replace(n=place.n - 1, total=place.total - 1)
    found = first.store.taken[1]
    first.store.taken[1] = found._replace(place=str(taken))

    def shown(before: Mapping[int, str]) -> str:
        return left_by(Shard(world, 0, first, before))[1]

    assert shown({1: str(place)}) == str(place)
    # An earlier release does not say it, or the store of the log has gone back.
    assert shown({}) == str(taken)
    assert shown({1: str(place._replace(n=place.n + 1000))}) == str(taken)


@pytest.mark.slow
def test_who_subscribes_to_a_pruned_channel_hears_everything_from_the_answer_on() -> None:
    pruned = grafted = 0
    for seed in range(12 * TIMES):
        world = World(seed, has_faults=False, is_rare=True)
        world.run(800)
        pruned, grafted = pruned + world.pruned, grafted + world.grafted
    assert pruned > 20
    assert grafted > 5


@pytest.mark.slow
def test_named_sessions_lose_nothing_when_processes_are_killed_and_stores_are_away() -> None:
    killed = accepted = agreed = 0
    for seed in range(5):
        world = World(seed)
        world.run()
        killed, accepted = killed + world.killed, accepted + world.accepted
        agreed += world.agreed
    assert killed > 10
    assert accepted > 100
    assert agreed > 10


@pytest.mark.slow
def test_messages_keep_their_order_while_channels_become_topics() -> None:
    made = 0
    for seed in range(15 * TIMES):
        world = World(seed, has_faults=False, makes_topics=True)
        world.run()
        made += sum(len(shard.member.others.topics) for shard in world.shards.values())
    assert made > 15


def test_facts_stay_if_a_store_goes_back_before_the_sessions_are_restored() -> None:
    world = World(0)
    store = world.stores[0]
    with patch.object(Member, "serve", lambda _: None):
        member = Shard(world, 0).member
    store.facts, store.inbox = {"/a": "1"}, {}
    assert member.begin_again(store.open()) == ({}, {})
    # From then on they are those of the sessions, of which there are none.
    member.serve()
    assert store.facts == {}
    store.facts = {"/b": "1"}
    facts, parts = member.begin_again(store.open())
    assert facts == {"/b": ""}
    assert read(parts["all"]).facts == facts


def test_a_call_whose_answer_the_store_has_does_not_come_back_when_the_store_goes_back() -> None:
    world = World(0)
    with patch.object(Member, "serve", lambda _: None):
        member = Shard(world, 0).member
    member.others.homes.take_call(1, call("addressed", 5, b""))
    assert [*member.inbox()] == ["1 5"]
    # The message that it asked for is stored, and waits for replicas.
    member.on_appended(1, Parts(1, {"1": write(())}, ["1 5"]), False)
    assert member.inbox() == {}


def test_a_call_goes_on_waiting_for_its_answer_when_the_store_goes_back() -> None:
    """The store is told it again: what asked for it must not count on it being lost."""
    world = World(0, has_faults=False)
    shard, answers = world.shards[0], list[bytes | None]()
    shard.member.others.homes.send(1, "lent", b"", answers.append)
    shard.member.begin_again(shard.store.open())
    assert answers == []
    [id] = shard.member.others.homes._sent._sent
    shard.member.others.homes.take_answer(
        done_with(ShardCall(0, id, "", "lent", b""), b"taken").answer
    )
    assert answers == [b"taken"]


def passed(world: World, seconds: float = 1.0) -> None:
    """Let some time pass without faults."""
    for _ in range(round(seconds * 10)):
        world.now += 0.1
        for shard in world.shards.values():
            for other in world.stores:
                if other != shard.number:
                    shard.read(other, 100)
            shard.tick()
            shard.turn()


def test_others_know_what_a_shard_holds() -> None:
    world = World(0, has_faults=False)
    holds = world.shards[1].server.bayeux.life.channel_holds
    holds.hold("/a", "", "operator/ann")
    world.shards[1].turn()
    passed(world)
    assert world.shards[0].member.others.has_row(HELD_ROW + "/a") is True
    assert world.shards[0].member.others.has_row(HELD_ROW + "/b") is False
    # Its own holds it knows.
    assert world.shards[1].member.others.has_row(HELD_ROW + "/a") is False
    holds.release("/a", "operator", "operator/ann")
    world.shards[1].turn()
    passed(world)
    assert world.shards[0].member.others.has_row(HELD_ROW + "/a") is False


def test_others_know_a_topic_and_that_it_is_none_any_more() -> None:
    world = World(0, has_faults=False)
    [first, second] = [each.member.others for each in world.shards.values()][:2]
    known: list[bool] = []
    first.tell_topic("/a/b", True)
    first.when_topic_known("/a/b", known.append)
    assert (known, [*second.topics]) == ([], [])
    passed(world)
    assert (known, [*second.topics]) == ([True], ["/a/b"])
    assert first.homes.is_topic("/a/b")
    assert second.homes.is_topic("/a/b")
    assert first.homes.home_of("/a/b") == second.homes.home_of("/a/b") == 2
    first.tell_topic("/a/b", False)
    passed(world)
    assert not second.topics
    assert not first.homes.is_topic("/a/b")


def test_what_a_shard_accepts_behind_a_message_that_it_has_read_has_a_later_id() -> None:
    world = World(0, has_faults=False, rules={"/a": 1})
    home = world.homes.of_channel("/a")
    assert home is not None
    first, second = world.shards[home], world.shards[(home + 1) % len(world.shards)]
    # One clock is an hour ahead.
    first.server.set_clock_back(-3600.0)
    asked = first.publisher.publish("/a", 1, ext={"delivery": {}})
    first.turn()
    id = int(asked.reply["ext"]["delivery"]["id"].rpartition("-")[2])
    assert second.server.bayeux.state.node.stamp() < id
    passed(world)
    assert second.server.bayeux.state.node.stamp() > id


def test_shards_tell_each_other_how_far_their_messages_are() -> None:
    world = World(0, has_faults=False, rules={"/a": 1})
    first, second = list(world.shards.values())[:2]
    assert first.member.others.complete_cursor() == 0
    passed(world)
    began = first.member.others.complete_cursor()
    # All hear of a message at one of them.
    second.publisher.publish("/a", 1)
    second.turn()
    kept = second.server.bayeux.state.node.stamp() // 1000
    assert first.member.others.complete_cursor() <= began or began == 0
    passed(world)
    assert first.member.others.complete_cursor() > kept


def test_a_message_that_waits_for_the_store_holds_the_cursor_back() -> None:
    world = World(0, has_faults=False, rules={"/a": 1})
    home = world.homes.of_channel("/a")
    assert home is not None
    shard = world.shards[home]
    passed(world)
    shard.publisher.publish("/a", 1, ext={"delivery": {"key": "k"}})
    [waiting] = shard.server.bayeux.state.hub.publish_order.crossing("/a")
    among = far_parts_of(shard.server.bayeux).publishing
    assert among.complete_cursor() < waiting.id // 1000
    shard.turn()
    assert among.complete_cursor() > waiting.id // 1000


def test_without_histories_no_shard_waits_for_others() -> None:
    world = World(0, has_faults=False)
    assert all(shard.member.others.complete_cursor() > 0 for shard in world.shards.values())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 100 + 20 * TIMES))
def test_they_lose_nothing_in_many_worlds(seed: int) -> None:
    World(seed).run()
    World(seed, has_faults=False).run()


class HearsAtOnce(World):
    """A world in which everybody always connects, so that nothing is put in order as it waits."""

    def _look(self) -> None:
        for shard in self.shards.values():
            shard.turn()
        super()._look()
        for person in self.people:
            person.wait()


def found_by(
    *,
    has_faults: bool = True,
    makes_topics: bool = False,
    is_rare: bool = False,
    world: type[World] = World,
    first: int = 0,
) -> str:
    """What is wrong in some world; the first that is tried is known to show it, or was once."""
    for seed in range(first, first + 60):
        try:
            world(seed, has_faults=has_faults, makes_topics=makes_topics, is_rare=is_rare).run()
        except AssertionError as error:
            return str(error)
    return ""


@pytest.mark.interpreted
@pytest.mark.slow
def test_subscribes_that_are_answered_at_once_are_found() -> None:
    def when_known(_: object, __: object, done: Callable[[bool], None]) -> None:
        done(True)

    with patch.object(OwnRows, "when_known", when_known):
        assert "lacks" in found_by()


@pytest.mark.interpreted
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "broken", "first"), [("is_grafting", False, 55), ("join", lambda *_, **__: None, 0)]
)
def test_subscribers_that_do_not_wait_for_what_is_pruned_are_found(
    name: str, broken: object, first: int
) -> None:
    with patch.object(Pruning, name, broken):
        assert "lacks" in found_by(has_faults=False, is_rare=True, first=first)


@pytest.mark.interpreted
@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "name", "broken", "first"),
    [
        (OtherShards, "when_topic_known", lambda _, __, done: done(True), 11),
        (MadeTopics, "_may_go", lambda _, publish: not publish.qos.configures, 34),
    ],
)
def test_messages_that_overtake_others_by_the_home_of_a_topic_are_found(
    what: type, name: str, broken: Callable[..., object], first: int
) -> None:
    with patch.object(what, name, broken):
        found = found_by(has_faults=False, makes_topics=True, world=HearsAtOnce, first=first)
    assert "out of order" in found


@pytest.mark.interpreted
@pytest.mark.slow
def test_facts_that_are_not_learned_from_logs_are_found() -> None:
    with patch.object(KnownFacts, "learn", lambda *_: None):
        assert "lacks" in found_by(first=37)


@pytest.mark.slow
def test_messages_that_are_shown_before_they_are_stored_are_found() -> None:
    sort = Arrivals.sort

    def sort_at_once(self: Arrivals, frame: object, *, is_new: bool = True) -> Sorted[object]:
        found = sort(self, frame, is_new=is_new)  # type: ignore[arg-type]
        return Sorted(found.at_once, (), found.later, 0)

    with patch.object(Arrivals, "sort", sort_at_once):
        assert "lacks" in found_by()


@pytest.mark.interpreted
@pytest.mark.slow
def test_a_stored_message_that_overtakes_others_at_its_call_is_found() -> None:
    when_stored = Crossings.when_stored

    def cross(self: Crossings, message: Message, _: object, answered: Answered) -> Answered:
        return when_stored(self, message, (), answered)

    with patch.object(Crossings, "when_stored", cross):
        assert "out of order" in found_by(has_faults=False)


@pytest.mark.slow
def test_passing_messages_that_stay_behind_later_stored_ones_are_found() -> None:
    with patch.object(Member, "flush", lambda _: None):
        assert "out of order" in found_by(has_faults=False)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("what", "name", "broken"),
    [
        (DirectArrivals, "has_come", lambda *_: True),
        (DirectArrivals, "_is_read", lambda *_: True),
        (Followed, "of", lambda *_: {}),
        (KeptFirst, "holds", lambda *_: False),
    ],
)
def test_links_and_logs_that_overtake_each_other_are_found(
    what: type, name: str, broken: Callable[..., object]
) -> None:
    with patch.object(what, name, broken):
        assert "out of order" in found_by(has_faults=False)


def test_a_channel_with_a_home_takes_the_log_alone() -> None:
    world = World(0, has_faults=False, rules={"/a": 1, "/b": 1, "/c/*": 1})
    world.run()
    assert world.passed == 0
    assert any(shard.member.others.own.log.appended for shard in world.shards.values())


def test_most_messages_that_are_not_stored_take_links() -> None:
    world = World(0, has_faults=False)
    world.run()
    assert world.passed > 20


def test_a_process_that_may_not_speak_expects_durable_receivers_everywhere() -> None:
    shard = World(0, has_faults=False).shards[0]
    assert not shard.member.others.has_durable("/news")
    shard.may_speak = False
    assert shard.member.others.has_durable("/news")


def test_a_process_that_may_have_lost_its_shard_does_not_report_what_it_missed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    shard = World(0, has_faults=False).shards[0]
    shard.may_speak = False
    for begin in (3, 5):
        shard.member.miss(1, Gap(Place("x", 1, begin, begin), Place("x", 1, begin + 1, begin + 1)))
        shard.member.tick()
    assert (shard.member.gaps, caplog.messages) == (0, [])
    shard.may_speak = True
    shard.member.tick()
    assert shard.member.gaps == 1
    assert caplog.messages == [
        "3 entries of shard 1 did not arrive: its log has them no more (from x 1-3 3 to x 1-6 6)"
    ]


def test_a_message_that_is_appended_twice_because_a_store_went_back_arrives_once() -> None:
    world = World(0, has_faults=False)
    reader = world.shards[1]
    reader.server.client().subscribe("/news")
    message = Message(b"{}", id=5_000_000_000, channel="/news", sender="ann/1")
    frame = read(write([entry_of(message)]))
    arrivals = reader.member.arrivals[0]
    first = arrivals.sort(frame)
    # Until it is shown, the store may refuse it, and then it is read again.
    assert len(arrivals.sort(frame).at_once) == 1
    arrivals.show_at_once(NOWHERE, first.at_once)
    assert arrivals.sort(frame).at_once == []


def test_a_call_that_is_appended_twice_because_a_store_went_back_is_done_once() -> None:
    arrivals = World(0, has_faults=False).shards[1].member.arrivals[0]
    frame = read(write([call("what", 5_000_000_000, b"")]))
    first = arrivals.sort(frame)
    assert len(first.kept) == 1
    arrivals.show(NOWHERE, first.later)
    again = arrivals.sort(frame)
    assert ([*again.kept], [*again.later]) == ([], [])


def exchange(world: World, *readers: int) -> None:
    """These shards read the logs of all others; all shards tick."""
    for _ in range(5):
        world.now += 0.3
        for number, shard in world.shards.items():
            for other in world.shards:
                if number in readers and other != number:
                    shard.read(other, 100)
            shard.tick()
            shard.turn()


def test_what_a_shard_needs_that_is_far_behind_is_refused_until_it_reads_again() -> None:
    world = World(1, has_faults=False)
    everybody = [*world.shards]
    writer, reader = world.shards[0], world.shards[1]
    subscriber = reader.server.client(ext={"delivery": {"session": "joe/1"}, "ack": True})
    asked = subscriber.subscribe("/news")
    exchange(world, *everybody)
    assert asked.reply["successful"]
    writer.member.others.own.trimming._most_bytes = 100_000

    def publish(channel: str) -> str:
        asked = writer.publisher.publish(channel, "x" * 2000)
        writer.turn()
        return str(asked.reply.get("error", "accepted"))

    for _ in range(40):
        assert publish("/news") == "accepted"
    exchange(world, *[each for each in everybody if each != 1])
    assert publish("/news") == "503:resource.overflow.log:shard_unavailable"
    assert publish("/other") == "accepted"
    for _ in range(3):
        exchange(world, *everybody)
    assert publish("/news") == "accepted"
