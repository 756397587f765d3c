"""A message for one receiver is stored with its name; others have a set of their receivers."""

import pytest
from redis import Redis

from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.outcomes import Move
from holdfast.store.format import scripts
from holdfast.store.format.layouts import OLDEST_LAYOUT, written_form
from holdfast.store.format.records import MOST_OF_ONE, receiver_in, unpack_message, with_set
from holdfast.store.format.scripts import ScriptCall
from tests.store.model import Room
from tests.store.servers import ValkeyServer
from tests.store.store_process import BASE, KEYS, letter, message

LARGE = "x" * MOST_OF_ONE


@pytest.fixture
def room(shared_valkey: ValkeyServer) -> Room:
    room = Room(Redis.from_url(shared_valkey.url))
    room.open()
    return room


def alone(room: Room) -> str | None:
    """The receiver in the record of the first message."""
    found = receiver_in(stored(room))
    return None if found is None else found.decode()


def stored(room: Room) -> bytes:
    """The record of the first message."""
    return room.hash(KEYS.bodies).get(str(BASE + 1), "").encode(errors="surrogateescape")


def spread(room: Room) -> set[str]:
    """The receivers in the set of the first message."""
    found = room.redis.smembers(KEYS.receivers(BASE + 1))
    return {each.decode() for each in found}  # type: ignore[union-attr]


def settle(*receivers: str) -> ScriptCall:
    return scripts.settle(KEYS, {BASE + 1: receivers})


def move(*targets: str) -> ScriptCall:
    new = len(targets)
    return scripts.move(KEYS, [Move(message(1), "joe/1", targets, new, new)])


@pytest.fixture
def single(room: Room) -> Room:
    room.call(scripts.keep(KEYS, [(message(1), ["joe/1"])]))
    assert (alone(room), spread(room)) == ("joe/1", set())
    return room


def test_its_record_and_its_end_need_no_set(single: Room) -> None:
    single.call(settle("joe/1"))
    assert single.hash(KEYS.bodies) == {}


def test_nobody_else_settles_it(single: Room) -> None:
    single.call(settle("ann/1"))
    single.call(settle("ann/1", "eve/1"))
    assert alone(single) == "joe/1"


def test_a_second_receiver_makes_a_set_of_both(single: Room) -> None:
    single.call(scripts.keep(KEYS, [(message(1), ["ann/1"])]))
    assert (alone(single), spread(single)) == (None, {"joe/1", "ann/1"})
    single.call(settle("joe/1"))
    assert (alone(single), spread(single)) == (None, {"ann/1"})
    single.call(settle("ann/1"))
    assert single.hash(KEYS.bodies) == {}


def test_several_further_receivers_make_a_set_of_all(single: Room) -> None:
    single.call(scripts.keep(KEYS, [(message(1), ["ann/1", "eve/1"])]))
    assert (alone(single), spread(single)) == (None, {"joe/1", "ann/1", "eve/1"})


def test_a_copy_from_a_history_makes_a_set_of_both(room: Room) -> None:
    room.call(scripts.keep(KEYS, [(message(1), ["/orders/new"])]))
    room.call(scripts.keep(KEYS, [(message(1).initial(), ["joe/1"])]))
    assert (alone(room), spread(room)) == (None, {"/orders/new", "joe/1"})
    assert room.hash(KEYS.marks("joe/1")) == {str(BASE + 1): "g0"}


def test_a_replay_to_another_receiver_makes_a_set_of_both(single: Room) -> None:
    dead = letter(9, of=1, receiver="ann/1")
    single.redis.hset(KEYS.sessions, "ann/1", "{}")
    single.call(scripts.dead_letter(KEYS, [(dead, None)]))
    take = scripts.Take(dead, "ann/1", is_durable=True)
    single.call(scripts.replay_take(KEYS, "7", [take]))
    assert (alone(single), spread(single)) == (None, {"joe/1", "ann/1"})


def test_a_move_to_one_queue_changes_the_name_only(single: Room) -> None:
    before = stored(single)
    single.call(move("ann/1"))
    assert (alone(single), spread(single)) == ("ann/1", set())
    assert with_set(stored(single)) == with_set(before)
    assert unpack_message(BASE + 1, stored(single)).wire == message(1).wire


def test_a_move_to_several_queues_makes_a_set_of_these(single: Room) -> None:
    single.call(move("ann/1", "eve/1"))
    assert (alone(single), spread(single)) == (None, {"ann/1", "eve/1"})


def test_a_move_to_another_shard_removes_it(single: Room) -> None:
    single.call(move())
    assert single.hash(KEYS.bodies) == {}


def test_a_move_from_another_queue_does_nothing(single: Room) -> None:
    single.call(scripts.move(KEYS, [Move(message(1), "eve/1", ("ann/1",), 1, 1)]))
    assert alone(single) == "joe/1"


def test_it_gets_marks_and_becomes_a_dead_letter_like_any_other(single: Room) -> None:
    dead = letter(9, of=1, receiver="joe/1")
    single.call(scripts.dead_letter(KEYS, [(dead, "joe/1")]))
    assert single.hash(KEYS.bodies) == {}
    assert list(single.hash(KEYS.dead)) == [dead.id]


@pytest.mark.parametrize("kept", [message(1, LARGE), message(1).initial()], ids=["large", "copy"])
def test_a_large_message_and_one_with_a_mark_always_have_a_set(room: Room, kept: Message) -> None:
    room.call(scripts.keep(KEYS, [(kept, ["joe/1"])]))
    assert (alone(room), spread(room)) == (None, {"joe/1"})


def test_an_older_release_finds_a_set(room: Room) -> None:
    room.call(scripts.keep(KEYS, [(message(1), ["joe/1"])], form=written_form(OLDEST_LAYOUT)))
    assert (alone(room), spread(room)) == (None, {"joe/1"})
