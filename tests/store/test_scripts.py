"""The scripts against a naive model, with calls repeated as a bad connection repeats them."""

from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from redis import Redis
from redis.exceptions import ResponseError

from holdfast.delivery.guard.holds import ChannelHold
from holdfast.delivery.messages.former_attempts import FormerAttempts, tried
from holdfast.delivery.messages.marks import BatchMark, Mark
from holdfast.delivery.messages.outcomes import Move
from holdfast.delivery.ports.journal_port import NO_JOURNAL
from holdfast.store.format import letter_records, records, scripts
from holdfast.store.format.layouts import LAYOUT
from holdfast.store.format.opening_scripts import finish_upgrade, release
from holdfast.store.format.publish_keys import KeyLimits
from holdfast.store.format.scripts import ScriptCall, Take
from holdfast.store.writing.journaling import Journaling
from holdfast.store.writing.turn_buffer import TurnBuffer
from tests.effort import TIMES
from tests.store.model import EPOCH, SESSIONS, Both, Room, opening
from tests.store.numbering import Numbering
from tests.store.store_process import BASE, KEYS, letter, message, session

numbers = st.integers(0, 4)
keys = st.sampled_from(SESSIONS)
operations = st.one_of(
    st.tuples(st.just("save"), keys),
    st.tuples(st.just("keep"), numbers, st.lists(keys, min_size=1, unique=True)),
    st.tuples(st.just("keep"), numbers, st.lists(keys, min_size=1, unique=True)),
    st.tuples(st.just("hand_over"), keys, st.integers(1, 9)),
    st.tuples(st.just("mark"), numbers, keys, st.integers(1, 9)),
    st.tuples(st.just("move"), numbers, keys, keys, st.integers(0, 2)),
    st.tuples(st.just("send_away"), numbers, keys),
    st.tuples(st.just("settle"), numbers, keys),
    st.tuples(st.just("bury"), numbers, keys, st.booleans()),
    st.tuples(st.just("forget"), keys),
    st.tuples(st.just("ask"), numbers, keys),
    st.tuples(st.just("answer"), numbers, numbers, keys),
)
many = st.lists(operations, max_size=12)
# How many more calls the store carries out before a connection is lost, and how many of these
# are answered.
attempts = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=3)
clearing = st.one_of(st.none(), st.tuples(st.sampled_from(["remove", "replay"]), st.integers(0, 9)))
windows = st.lists(st.tuples(st.lists(many, max_size=3), clearing, attempts))


@pytest.mark.slow
@settings(
    max_examples=30 * TIMES,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(windows)
@example(
    [
        (
            [
                [
                    ("keep", 0, ["joe/1", "ann/1"]),
                    ("mark", 0, "ann/1", 1),
                    ("bury", 0, "ann/1", True),
                    ("settle", 0, "ann/1"),
                ]
            ],
            None,
            [],
        )
    ]
)
@example(
    [
        ([[("keep", 1, ["ann/1"]), ("save", "joe/1")]], None, []),
        (
            [
                [
                    ("forget", "joe/1"),
                    ("save", "joe/1"),
                    ("keep", 0, ["joe/1"]),
                    ("move", 1, "ann/1", "joe/1", 1),
                ]
            ],
            None,
            [(4, 1), (2, 0)],
        ),
    ]
)
def test_repeated_calls_leave_the_store_as_the_model_has_it(
    redis: Redis, given: list[tuple[list[Any], Any, list[tuple[int, int]]]]
) -> None:
    turns, room = TurnBuffer(), Room(redis)
    both = Both(turns)
    room.open()
    for given_turns, clear, attempts in given:
        calls = [call for turn in given_turns for call in calls_of(both, turns, turn)]
        if clear is not None:
            name, at = clear
            last = getattr(both, name)(at)
            calls += [] if last is None else [last]
        answered = 0
        for carried_out, heard_of in [*attempts, (len(calls), 0)]:
            for call in calls[answered : answered + carried_out]:
                room.call(call)
            answered += min(carried_out, heard_of)
        both.model.check(room)


def calls_of(both: Both, turns: TurnBuffer, turn: list[Any]) -> list[ScriptCall]:
    for operation in turn:
        name, *words = operation
        if name == "bury":
            n, key, is_durable = words
            both.dead_letter(n, key, is_durable=is_durable)
        else:
            getattr(both, name)(*words)
    return [
        outgoing.call
        for each in turns.take()
        for outgoing in each.calls(KEYS, KeyLimits(clock=0, most=1000), NO_JOURNAL)
    ]


# One by one


@pytest.fixture
def room(redis: Redis) -> Room:
    room = Room(redis)
    room.open()
    return room


def plain() -> list[ScriptCall]:
    return [
        release(KEYS),
        scripts.save(KEYS, [session("joe/1")]),
        scripts.keep(KEYS, [(message(1), ["joe/1"])]),
        finish_upgrade(KEYS),
        scripts.keep_keyed(KEYS, [(message(1, key="k"), ["joe/1"])], KeyLimits(clock=0, most=9)),
        scripts.advance_clock(KEYS, 1, given=0),
        scripts.move(KEYS, [Move(message(1), "joe/0", ["joe/1"], 1, 1)]),
        scripts.mark(KEYS, {"joe/1": {1: Mark(1, 1)}}),
        scripts.mark_batches(KEYS, {"joe/1": BatchMark(1, 1, [1])}),
        scripts.settle(KEYS, {1: ["joe/1"]}),
        scripts.unmark(KEYS, {"joe/1": [1]}),
        scripts.dead_letter(KEYS, [(letter(1), None)]),
        scripts.forget(KEYS, ["joe/1"]),
        scripts.trim(KEYS, "test", read_ms=1, oldest_ms=0, size=1, now_ms=1),
        scripts.save_channel_holds(KEYS, {"/a": ChannelHold(1, "why")}),
        scripts.letters_remove(KEYS, [letter(1)]),
        scripts.remark(KEYS, "f", b"{}", at=1, most=1),
        scripts.audit(KEYS, ["who", "ann"], most=9),
        scripts.replay_take(KEYS, "1", [Take(letter(1), "joe/1", True)]),
        scripts.replay_note(KEYS, "1", {"record": "{}"}),
        scripts.replay_forget(KEYS, "1"),
    ]


def everything() -> list[ScriptCall]:
    journaling = Journaling(KEYS, "test")
    carrying = [
        journaling.annotate(call, b"note")[0]
        for call in plain()
        if call.script.with_note is not None
    ]
    return [*plain(), *carrying, journaling.frame(EPOCH, b"frame", [1])]


@pytest.mark.parametrize("call", everything(), ids=lambda call: call.script.name)
def test_a_script_with_another_epoch_writes_nothing(room: Room, call: ScriptCall) -> None:
    before = room.names("*")
    room.numbering = Numbering("other000")
    with pytest.raises(ResponseError, match=f"EPOCH {EPOCH}"):
        room.call(call)
    room.redis.flushall()
    with pytest.raises(ResponseError, match="EPOCH gone"):
        room.call(call)
    assert before == {KEYS.meta, KEYS.handed}
    assert room.names("*") == set()


@pytest.mark.parametrize("call", everything(), ids=lambda call: call.script.name)
def test_a_repeated_script_writes_nothing(room: Room, call: ScriptCall) -> None:
    room.call(scripts.save(KEYS, [session("joe/1")]))
    room.call(scripts.dead_letter(KEYS, [(letter(1), None)]))
    first = room.call(call)
    before = written(room)
    again = room.call(call)
    assert written(room) == before
    if call.script.name.startswith(("keep_keyed", "replay_take")):
        assert again == first


@pytest.mark.parametrize("call", everything(), ids=lambda call: call.script.name)
def test_a_script_writes_nothing_in_a_store_that_has_lost_the_call_before_it(
    room: Room, call: ScriptCall
) -> None:
    room.numbering.words(scripts.save(KEYS, []))
    before = written(room)
    with pytest.raises(ResponseError, match="BACK nonce000-000000000000"):
        room.call(call)
    assert written(room) == before


def written(room: Room) -> dict[str, object]:
    """Everything in the store."""
    return {name: room.redis.dump(name) for name in room.names("*")}


def test_every_script_is_among_those_tested_for_the_epoch() -> None:
    assert {call.script for call in everything()} | {scripts.OPEN} == set(scripts.SCRIPTS)


def test_a_process_that_opens_the_store_takes_the_write_right_of_the_one_before(room: Room) -> None:
    # The compiled caller takes texts only.
    reply = room.call(opening("other000"))
    known = [EPOCH.encode(), b"test", bytes(32).hex().encode()]
    assert reply == [b"seed-2.other000", b"", b"0", str(LAYOUT).encode(), *known]
    with pytest.raises(ResponseError, match=r"EPOCH seed-2\.other000"):
        room.call(scripts.save(KEYS, [session("joe/1")]))
    room.numbering = Numbering("other000")
    room.call(scripts.save(KEYS, [session("joe/1")]))


def test_a_repeated_opening_has_the_same_epoch(room: Room) -> None:
    room.call(scripts.save(KEYS, [session("joe/1")]))
    before = written(room)
    assert room.call(opening("nonce000"))[0] == EPOCH.encode()
    assert written(room) == before


def test_who_opens_a_store_and_gives_no_ids_leaves_those_to_the_next_process(room: Room) -> None:
    room.redis.hset(KEYS.meta, "stamped", f"{BASE:019}")
    for nonce in ("second00", "third000"):
        assert int(room.call(opening(nonce))[1]) == BASE


def test_a_store_is_opened_instead_of_known_epochs_only(room: Room) -> None:
    with pytest.raises(ResponseError, match=f"EPOCH {EPOCH}"):
        room.call(opening("other000", ["seed-1.another", "seed-1"]))
    assert room.call(opening("other000", ["seed-0.first", EPOCH]))[0] == b"seed-2.other000"
    room.redis.flushall()
    assert room.call(opening("other000", [EPOCH]))[0] == b"seed-1.other000"


def test_an_opening_knows_the_latest_epochs_before_it(room: Room) -> None:
    before = [f"seed-{number}.{number:08}" for number in range(1100)]
    room.redis.hset(KEYS.meta, "epochs", " ".join(before))
    found = room.call(opening("other000"))[4].decode().split()
    assert found == [*before[-999:], EPOCH]


def test_a_message_that_left_its_queue_is_not_moved(room: Room) -> None:
    room.call(scripts.keep(KEYS, [(message(1), ["joe/0"])]))
    there = [Move(message(1), "joe/0", ["joe/1", "joe/2"], 2, 2)]
    for _ in range(2):
        room.call(scripts.move(KEYS, there))
        assert [len(room.queue(key)) for key in ("joe/0", "joe/1", "joe/2")] == [0, 1, 1]
    room.call(scripts.settle(KEYS, {BASE + 1: ["joe/1", "joe/2"]}))
    room.call(scripts.move(KEYS, there))
    assert room.hash(KEYS.bodies) == {}
    assert room.queue("joe/1") == {}


def test_a_message_moves_with_its_attempts_in_one_step(room: Room) -> None:
    room.call(scripts.keep(KEYS, [(message(1), ["joe/1", "joe/2"])]))
    moved = tried(message(1), FormerAttempts(3, 2, (), was_alone=True))
    moved.generation = 7
    room.call(scripts.move(KEYS, [Move(moved, "joe/1", ["joe/3", "joe/2"], 1, 1)]))
    # A session that had the message already keeps its own attempts.
    queues = [room.queue(f"joe/{n}") for n in (1, 2, 3)]
    assert queues == [{}, {BASE + 1: ""}, {BASE + 1: "0 0 1 3 2g7"}]


def test_a_mark_preserves_the_generation_of_a_replayed_message(room: Room) -> None:
    room.call(scripts.save(KEYS, [session("joe/1")]))
    room.call(scripts.dead_letter(KEYS, [(letter(7, of=1, generation=11), None)]))
    take = Take(letter(7, of=1, generation=11), "joe/1", True)
    assert room.call(scripts.replay_take(KEYS, "17", [take])) == [b"taken"]
    room.call(scripts.mark(KEYS, {"joe/1": {1: Mark(BASE + 1, 3, 2, 1, 0)}}))
    assert room.queue("joe/1") == {BASE + 1: "0 3 2 1 0g12"}
    mark, generation = records.unpack_entry(BASE + 1, b"0 3 2 1 0g12")
    assert (mark, generation) == (Mark(BASE + 1, 3, 2, 1, 0), 12)


def test_a_replayed_message_has_the_id_bytes_channel_and_sender_of_its_letter(room: Room) -> None:
    room.call(scripts.save(KEYS, [session("joe/1")]))
    room.call(scripts.dead_letter(KEYS, [(letter(7, of=1), None)]))
    take = Take(letter(7, of=1), "joe/1", True)
    room.call(scripts.replay_take(KEYS, "17", [take]))
    body = room.hash(KEYS.bodies)[str(BASE + 1)].encode(errors="surrogateescape")
    found = records.unpack_message(BASE + 1, body)
    assert (found.wire, found.channel, found.sender) == (
        message(1).wire,
        "/orders/new",
        "client/ann/2",
    )


def test_a_letter_is_taken_by_one_job_and_a_repeated_call_gets_the_same_answer(room: Room) -> None:
    room.call(scripts.save(KEYS, [session("joe/1")]))
    room.call(scripts.dead_letter(KEYS, [(letter(7, of=1), None)]))
    take = Take(letter(7, of=1), "joe/1", True)
    for job, result in (("17", b"taken"), ("17", b"taken"), ("18", b"replayed")):
        assert room.call(scripts.replay_take(KEYS, job, [take])) == [result]
    assert room.hash(KEYS.replay("17")) == {"replayed": "1"}
    assert letter_records.unpack_letter(room.hash(KEYS.dead)[take.letter.id].encode()).replays == 1


@pytest.mark.parametrize(
    ("prepare", "result"),
    [
        ([], b"gone"),
        ([scripts.dead_letter(KEYS, [(letter(7, of=1), None)])], b"receiver"),
        (
            [
                scripts.dead_letter(KEYS, [(letter(7, of=1), None)]),
                scripts.save(KEYS, [session("joe/1")]),
                scripts.keep(KEYS, [(message(1), ["joe/1"])]),
            ],
            b"waiting",
        ),
    ],
)
def test_a_letter_that_cannot_be_taken_stays_as_it_is(
    room: Room, prepare: list[ScriptCall], result: bytes
) -> None:
    for call in prepare:
        room.call(call)
    before = room.hash(KEYS.dead)
    take = Take(letter(7, of=1), "joe/1", True)
    assert room.call(scripts.replay_take(KEYS, "17", [take])) == [result]
    assert room.hash(KEYS.dead) == before


def test_a_letter_for_a_passing_session_is_taken_without_a_stored_message(room: Room) -> None:
    room.call(scripts.dead_letter(KEYS, [(letter(7, of=1), None)]))
    take = Take(letter(7, of=1), "joe/-5", False)
    assert room.call(scripts.replay_take(KEYS, "17", [take])) == [b"taken"]
    assert room.hash(KEYS.bodies) == {}
