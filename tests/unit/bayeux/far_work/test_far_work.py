"""Work queues whose home is another shard than the session that does the work."""

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.settings import ChannelSettings
from tests.unit.bayeux.far_work.working import (
    JOBS,
    balances,
    fetch,
    is_done,
    outcomes,
    put,
    settled,
    taker,
    waiting,
    working,
)
from tests.unit.bayeux.harness import Asked, Client
from tests.unit.bayeux.leaving.successors import at
from tests.unit.bayeux.publish.shards import World
from tests.unit.extensions.delivering import codes, connect, no, redelivered

if TYPE_CHECKING:
    from collections.abc import Callable

REFUSED = "user.update.illegalArgument"


@pytest.fixture
def world() -> World:
    return working()


def back(world: World, client: Client, name: str) -> Client:
    """The client of a session, at the next process of its shard."""
    return at(client, world.shards[world.home_of(name)].server)


def again(world: World, name: str, **options: Any) -> Client:
    """The next client of a named session after a kill."""
    return taker(world, name, **options)


@pytest.mark.parametrize("shard", [0, 1])
def test_work_goes_to_a_session_of_another_shard_and_is_done_once(world: World, shard: int) -> None:
    bob = taker(world, "bob/1")
    assert all(reply["successful"] for reply in put(world, shard, 1, 2))
    assert fetch(world, bob).data == [1, 2]
    fetch(world, bob)
    assert is_done(world)
    assert outcomes(world) == {"acked": 2, "dead": 0}
    assert balances(world)


def test_the_home_hears_that_work_is_done_when_the_store_of_its_session_has_that(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    bob = taker(world, "bob/1")
    put(world, 1, 1)
    assert fetch(world, bob).data == [1]
    stored: list[Callable[[], None]] = []
    monkeypatch.setattr(world.shards[0].keeper, "after", stored.append)
    fetch(world, bob)
    settled(world)
    assert not is_done(world)
    assert world.shards[0].keeper.queues["bob/1"] == {}
    [has] = stored
    has()
    settled(world)
    assert is_done(world)
    assert balances(world)


def test_sessions_of_all_shards_share_the_work(world: World) -> None:
    bob, ann = taker(world, "bob/1"), taker(world, "ann/1")
    put(world, 0, *range(4))
    shares = [fetch(world, each).data for each in (bob, ann)]
    assert sorted(shares[0] + shares[1]) == [0, 1, 2, 3]
    assert [len(each) for each in shares] == [2, 2]


def test_work_waits_at_home_for_a_session_of_any_shard(world: World) -> None:
    put(world, 0, 1)
    assert waiting(world) == [1]
    assert fetch(world, taker(world, "bob/1")).data == [1]


def test_a_session_with_room_for_one_gets_one_at_a_time(world: World) -> None:
    bob = taker(world, "bob/1", queue={"maxEntries": 1})
    put(world, 0, 1, 2)
    assert fetch(world, bob).data == [1]
    assert waiting(world) == [2]
    fetch(world, bob)
    assert fetch(world, bob).data == [2]


def test_a_session_whose_queue_is_full_of_other_messages_gets_work_later(world: World) -> None:
    bob = taker(world, "bob/1", queue={"maxEntries": 1})
    bob.subscribe("/news")
    bob.server.turn()
    world.shards[0].server.for_extensions.publish("/news", "hello")
    bob.server.turn()
    put(world, 1, 1)
    assert fetch(world, bob).data == ["hello"]
    assert waiting(world) == [1]
    fetch(world, bob)
    assert fetch(world, bob).data == [1]
    assert balances(world)


def test_refused_work_goes_to_a_session_of_another_shard(world: World) -> None:
    bob = taker(world, "bob/1")
    put(world, 0, 1)
    [job] = fetch(world, bob).events
    ann = taker(world, "ann/1")
    fetch(world, bob, no(job, REFUSED))
    [again] = fetch(world, ann).events
    assert again["data"] == 1
    assert again["ext"]["delivery"]["id"] == job["ext"]["delivery"]["id"]
    assert again["ext"]["delivery"]["redelivered"] == 1
    fetch(world, ann)
    assert is_done(world)
    assert balances(world)


def test_work_that_sessions_of_all_shards_refuse_is_dead_with_all_attempts(world: World) -> None:
    bob, ann = taker(world, "bob/1"), taker(world, "ann/1")
    put(world, 0, 1)
    for _ in range(2):
        for client in (bob, ann):
            for job in fetch(world, client).events:
                fetch(world, client, no(job, REFUSED))
    home = world.shards[1].server
    assert codes(home) == [REFUSED]
    [letter] = home.keeper.letters
    assert letter.receiver == f"client/work:{JOBS}/0"
    assert sorted(each.receiver for each in letter.attempts) == ["ann/1", "bob/1"]
    assert waiting(world) == []
    assert balances(world)


def test_work_returns_when_its_session_ends_or_unsubscribes(world: World) -> None:
    bob, dan = taker(world, "bob/1"), taker(world, "dan/1")
    put(world, 0, 1, 2)
    assert fetch(world, bob).data == [1]
    bob.send({"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})
    bob.server.turn()
    dan.send({"channel": "/meta/unsubscribe", "subscription": JOBS})
    dan.server.turn()
    world.read_all()
    assert waiting(world) == [1, 2]
    ann = taker(world, "ann/1")
    asked = fetch(world, ann)
    assert asked.data == [1, 2]
    assert redelivered(asked) == [1, 0]
    assert balances(world)


@pytest.mark.parametrize("is_durable", [True, False])
def test_a_dead_message_is_dead_in_its_queue_wherever_its_session_is(
    world: World, is_durable: bool
) -> None:
    bob, ann = taker(world, "bob/1"), taker(world, "ann/1")
    put(world, 0, 1, 2, persistent=is_durable)
    [job] = fetch(world, bob).events
    fetch(world, bob, no(job, "user.update.deadMessage", "broken"))
    assert fetch(world, ann).data == [2]
    fetch(world, ann)
    assert codes(world.shards[0].server) == []
    [letter] = world.shards[1].server.keeper.letters
    assert (letter.receiver, letter.code) == (f"client/work:{JOBS}/0", "user.update.deadMessage")
    assert letter.reason.endswith("broken")
    assert [each.receiver for each in letter.attempts] == ["bob/1"]
    assert is_done(world)
    assert balances(world)


def test_work_expires_once_wherever_it_is(world: World) -> None:
    bob = taker(world, "bob/1")
    put(world, 0, 1, expiration={"lifeTime": 2000, "forceDestroy": True})
    settled(world, 3)
    assert fetch(world, bob).data == []
    assert is_done(world)
    assert balances(world)


def test_a_kill_of_the_sessions_shard_returns_its_work(world: World) -> None:
    bob = taker(world, "bob/1")
    put(world, 0, 1)
    assert fetch(world, bob).data == [1]
    world.shards[0].kill()
    settled(world)
    assert waiting(world) == [1]
    asked = fetch(world, taker(world, "ann/1"))
    assert asked.data == [1]
    assert redelivered(asked) == [1]


def test_a_kill_of_the_home_leaves_work_with_its_session(world: World) -> None:
    bob = taker(world, "bob/1")
    put(world, 0, 1)
    assert fetch(world, bob).data == [1]
    world.shards[1].kill()
    ann = taker(world, "ann/1")
    settled(world)
    assert fetch(world, ann).data == []
    fetch(world, bob)
    settled(world)
    assert is_done(world)
    assert fetch(world, ann).data == []


def test_lent_work_of_which_a_store_was_told_again_comes_marked_after_a_kill(world: World) -> None:
    put(world, 0, 1)
    assert fetch(world, taker(world, "bob/1")).data == [1]
    home = world.shards[1]
    source = home.server.bayeux.state.work.of(JOBS)
    assert source is not None
    # As a store that has lost changes is told what is in flight.
    home.keeper.mark(source.key, source.queue.tried())
    for shard in world.shards:
        shard.kill()
    settled(world)
    asked = fetch(world, taker(world, "ann/1"))
    assert asked.data == [1]
    assert redelivered(asked) == [1]


def test_what_was_acked_before_the_home_was_killed_is_done(world: World) -> None:
    bob = taker(world, "bob/1")
    put(world, 0, 1)
    assert fetch(world, bob).data == [1]
    # The home does not hear the ack before it is killed.
    bob.server.bayeux.tick(bob.server.now)
    asked = bob.connect(ext={"ack": bob.session.queue.batch}, advice={"timeout": 0})
    bob.server.turn()
    assert asked.data == []
    world.shards[1].kill()
    settled(world)
    assert is_done(world)


@pytest.mark.parametrize("shard", [0, 1])
@pytest.mark.parametrize("qos", [{}, {"persistent": False}])
def test_a_planned_restart_leaves_work_where_it_is(
    world: World, shard: int, qos: dict[str, Any]
) -> None:
    bob = taker(world, "bob/1")
    put(world, 1, 1, 2, **qos)
    assert fetch(world, bob).data == [1, 2]
    world.shards[shard].restart()
    back(world, bob, "bob/1")
    ann = taker(world, "ann/1")
    settled(world)
    assert fetch(world, ann).data == []
    assert waiting(world) == []
    assert fetch(world, bob).data == []
    settled(world)
    assert is_done(world)
    assert outcomes(world)["dead"] == 0
    assert balances(world)


@pytest.mark.parametrize("shard", [0, 1])
def test_work_is_done_once_although_a_planned_restart_fails(world: World, shard: int) -> None:
    bob = taker(world, "bob/1")
    put(world, 1, 1)
    assert fetch(world, bob).data == [1]
    world.shards[shard].restart_in_vain()
    fetch(world, bob)
    settled(world)
    assert is_done(world)
    assert balances(world)


def test_work_returns_when_its_shard_is_out_of_reach_and_late_verdicts_count_nothing(
    world: World,
) -> None:
    bob = taker(world, "bob/1")
    put(world, 1, 1)
    [job] = fetch(world, bob).events
    world.shards[1].away.add(0)
    for _ in range(60):
        world.shards[1].server.advance(0.1)
    ann = taker(world, "ann/1")
    asked = fetch(world, ann)
    assert (asked.data, redelivered(asked)) == ([1], [1])
    world.shards[1].away.clear()
    settled(world, 2)
    # Its copy is gone, as at a single server whose session had lost contact.
    fetch(world, bob, no(job, REFUSED))
    assert world.shards[0].server.bayeux.state.counters.verdicts_unknown == 1
    fetch(world, ann)
    assert is_done(world)
    assert outcomes(world) == {"acked": 1, "dead": 0}
    assert balances(world)


def test_a_shard_out_of_contact_does_not_take_what_was_lent_to_it_before(world: World) -> None:
    far, home = world.shards
    bob = taker(world, "bob/1")
    home.server.client().publish(JOBS, 1)
    home.server.turn()
    # It is on its way when the store of the other shard fails.
    far.keeper.is_available = False
    for _ in range(50):
        far.server.advance(0.1)
    home.give_up()
    home.server.advance(5.1)
    ann = taker(world, "ann/1")
    assert fetch(world, ann).data == [1]
    far.keeper.is_available = True
    assert fetch(world, bob).data == []
    settled(world)
    fetch(world, ann)
    assert is_done(world)
    assert balances(world)


def handed(client: Client) -> Asked:
    """What the client gets before its shard hears of others again."""
    asked = connect(client)
    client.server.turn()
    return asked


def lent(world: World) -> tuple[Client, Client]:
    """A session of the home and one of another shard, each with work, the latter on its way."""
    ann, bob = taker(world, "ann/1"), taker(world, "bob/1")
    boss = world.shards[1].server.client()
    for job in (1, 2):
        boss.publish(JOBS, job)
    world.shards[1].server.turn()
    return ann, bob


def test_work_stays_lent_while_the_store_of_its_home_hangs(world: World) -> None:
    _, home = world.shards
    ann, bob = lent(world)
    home.give_up()
    for is_available in (True, False, True):
        home.keeper.is_available = is_available
        home.server.advance(3)
    assert handed(ann).data == [2]
    assert handed(ann).data == []
    world.read_all()
    asked = handed(bob)
    assert (asked.data, redelivered(asked)) == ([1], [1])
    settled(world)
    fetch(world, bob)
    assert is_done(world)
    assert balances(world)


@pytest.mark.parametrize("is_away", [False, True])
def test_work_that_its_shard_does_not_take_returns_and_is_marked_there_if_it_comes_late(
    world: World, is_away: bool
) -> None:
    far, home = world.shards
    ann, bob = lent(world)
    home.give_up()
    home.server.advance(1)
    if is_away:
        home.away.add(0)
    home.server.advance(5.2)
    asked = handed(ann)
    assert (asked.data, redelivered(asked)) == ([1, 2], [1, 0])
    far.read(1, 1 << 30)
    asked = handed(bob)
    assert (asked.data, redelivered(asked)) == ([1], [1])
    home.away.clear()
    settled(world, 1)
    fetch(world, ann)
    fetch(world, bob)
    settled(world)
    assert is_done(world)
    assert outcomes(world) == {"acked": 2, "dead": 0}
    assert balances(world)


def test_a_shard_that_was_frozen_marks_work_that_others_may_have_by_now(
    world: World,
) -> None:
    far, home = world.shards
    bob = taker(world, "bob/1")
    put(world, 1, 1)
    # It waits for its session at the other shard, which is frozen.
    home.away.add(0)
    for _ in range(60):
        home.server.advance(0.1)
    ann = taker(world, "ann/1")
    asked = fetch(world, ann)
    assert (asked.data, redelivered(asked)) == ([1], [1])
    home.away.clear()
    far.server.sleep(6.0)
    asked = fetch(world, bob)
    assert (asked.data, redelivered(asked)) == ([1], [1])
    settled(world)
    fetch(world, bob)
    fetch(world, ann)
    assert is_done(world)
    assert balances(world)


@pytest.mark.parametrize("set_back_s", [0.0, 3600.0])
def test_a_shard_whose_clock_was_set_back_marks_work_that_others_may_have_by_now(
    world: World, set_back_s: float
) -> None:
    far, _ = world.shards
    bob = taker(world, "bob/1")
    put(world, 1, 1)
    far.server.set_clock_back(set_back_s)
    far.server.sleep(6.0)
    assert redelivered(connect(bob)) == [1]


def test_a_loan_is_marked_if_what_was_told_behind_it_may_take_it_back(world: World) -> None:
    far, home = world.shards
    ann, bob = lent(world)
    connect(bob)
    # What the other shard tells does not arrive for a while, and then bit by bit.
    far.heard[1] = far.steady_s()
    home.give_up()
    for _ in range(62):
        home.server.advance(0.1)
        far.server.advance(0.1)
    assert handed(ann).data == [1, 2]
    far.read(1, 1)
    asked = handed(bob)
    assert (asked.data, redelivered(asked)) == ([1], [1])


def test_work_stays_lent_while_its_shard_can_be_reached_by_the_log_alone(world: World) -> None:
    _, home = world.shards
    bob = taker(world, "bob/1")
    put(world, 1, 1)
    ann = taker(world, "ann/1")
    home.away.add(0)
    settled(world, 7.0)
    assert fetch(world, ann).data == []
    asked = fetch(world, bob)
    assert (asked.data, redelivered(asked)) == ([1], [0])
    fetch(world, bob)
    assert is_done(world)
    assert balances(world)


def test_work_is_marked_until_its_shard_has_heard_of_it_again(world: World) -> None:
    far, _ = world.shards
    bob = taker(world, "bob/1")
    put(world, 1, 1, 2)
    far.server.sleep(6.0)
    far.server.bayeux.tick(far.server.now)
    asked = connect(bob)
    far.server.turn()
    assert (asked.data, redelivered(asked)) == ([1, 2], [1, 1])
    settled(world, 1)
    put(world, 1, 3)
    asked = fetch(world, bob)
    assert (asked.data, redelivered(asked)) == ([3], [0])


def test_a_full_queue_refuses_publishers_of_all_shards() -> None:
    world = working(max_work_queue=1)
    first, second = put(world, 0, 1, 2)
    assert first["successful"]
    assert second["error"] == f"507:resource.overflow.queue.entries,{JOBS}:destination_full"


def test_operators_clear_what_waits_only(world: World) -> None:
    bob = taker(world, "bob/1", queue={"maxEntries": 1})
    put(world, 1, 1, 2)
    assert fetch(world, bob).data == [1]
    home = world.shards[1].server.bayeux
    queue = home.state.work.of(JOBS)
    assert queue is not None
    assert home.life.clear(queue) == 1
    world.shards[1].server.turn()
    fetch(world, bob)
    assert is_done(world)
    assert balances(world)


def test_other_channels_with_a_home_are_not_touched() -> None:
    rules = {"/home/a": ChannelSettings(work_queue=True), "/home/b/**": ChannelSettings()}
    world = working(channels=rules)
    bob = taker(world, "bob/1", channel="/home/b/x")
    assert put(world, 1, 1)[0]["successful"]
    assert fetch(world, bob).data == []
    assert waiting(world) == [1]
