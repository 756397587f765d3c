"""The scripts of logs, one by one, on a real server."""

from typing import Any

import pytest
from redis import Redis
from redis.exceptions import ResponseError

from holdfast.delivery.messages.marks import BatchMark
from holdfast.delivery.messages.outcomes import Move
from holdfast.store.format import log_scripts, scripts
from holdfast.store.format.log_scripts import LOG_SCRIPTS, LoggedFrame, Parts, Step
from holdfast.store.format.publish_keys import KeyLimits
from holdfast.store.format.scripts import ScriptCall
from tests.store.model import EPOCH, NONCE, Room, opening
from tests.store.numbering import Numbering
from tests.store.servers import ValkeyServer
from tests.store.store_process import BASE, KEYS, message

LIMITS = KeyLimits(clock=0, most=9)


@pytest.fixture
def room(redis: Redis) -> Room:
    room = Room(redis)
    room.open()
    return room


def frame(text: str = "frame", count: int = 1) -> Parts:
    return Parts(count, {"all": text.encode(), "3": b"for one"})


def noted(call: ScriptCall) -> ScriptCall:
    assert call.script.with_note is not None
    names = [*call.keys, KEYS.notes("test")]
    return ScriptCall(call.script.with_note, names, [*call.args, 7, b"note"])


def framed() -> list[ScriptCall]:
    return [
        log_scripts.with_frame(KEYS, call, frame())
        for call in (
            scripts.keep(KEYS, [(message(1), ["joe/1"])]),
            scripts.keep_keyed(KEYS, [(message(1, key="k"), ["joe/1"])], LIMITS),
            scripts.move(KEYS, [Move(message(1), "joe/0", ["joe/1"], 1, 1)]),
        )
    ]


def everything() -> list[ScriptCall]:
    taking = log_scripts.take(KEYS, [Step(3, "", "place")], [(message(1), ["joe/1"])])
    plain = [
        log_scripts.append(KEYS, frame()),
        log_scripts.append_facts(KEYS, {"fact": "true"}, frame()),
        log_scripts.take(KEYS, [Step(3, "", "place")], []),
        log_scripts.restore_frame(KEYS, LoggedFrame("", "other000 1-1 1", frame().parts)),
        log_scripts.trim_log(KEYS, "1-1", ["1-2"], {"1-3": "place"}),
    ]
    return [*framed(), *map(noted, framed()), *plain, taking, noted(taking)]


each_call = pytest.mark.parametrize("call", everything(), ids=lambda call: call.script.name)


def written(room: Room) -> dict[str, object]:
    return {name: room.redis.dump(name) for name in room.names("*")}


def entries(room: Room) -> list[tuple[str, dict[str, str]]]:
    found: Any = room.redis.xrange(KEYS.log)
    return [
        (id.decode(), {name.decode(): value.decode() for name, value in fields.items()})
        for id, fields in found
    ]


@each_call
def test_a_script_of_logs_with_another_epoch_writes_nothing(room: Room, call: ScriptCall) -> None:
    before = written(room)
    room.numbering = Numbering("other000")
    with pytest.raises(ResponseError, match=f"EPOCH {EPOCH}"):
        room.call(call)
    assert written(room) == before


@each_call
def test_a_repeated_script_of_logs_writes_nothing(room: Room, call: ScriptCall) -> None:
    room.call(call)
    before = written(room)
    room.call(call)
    assert written(room) == before


@each_call
def test_a_script_of_logs_writes_nothing_in_a_store_that_lost_the_call_before_it(
    room: Room, call: ScriptCall
) -> None:
    room.numbering.words(scripts.save(KEYS, []))
    before = written(room)
    with pytest.raises(ResponseError, match="BACK nonce000-000000000000"):
        room.call(call)
    assert written(room) == before


def test_every_script_of_logs_is_among_those_tested_and_a_server_alone_loads_none() -> None:
    assert {call.script for call in everything()} == {*LOG_SCRIPTS}
    assert not {*LOG_SCRIPTS} & {*scripts.SCRIPTS}


@pytest.mark.parametrize("call", framed()[:2], ids=lambda call: call.script.name)
def test_a_message_and_its_frame_are_stored_in_one_step_with_the_note(
    room: Room, call: ScriptCall
) -> None:
    room.call(noted(call))
    assert room.queue("joe/1") == {BASE + 1: ""}
    assert room.hash(KEYS.notes("test")) == {"7": "note"}
    [(id, fields)] = entries(room)
    assert id == "1-1"
    assert fields == {
        "before": "",
        "place": f"{NONCE} 1-1 1",
        "all": "frame",
        "3": "for one",
    }


def test_a_repeated_publish_key_appends_no_frame(room: Room) -> None:
    for n in (1, 2):
        call = scripts.keep_keyed(KEYS, [(message(n, key="k"), ["joe/1"])], LIMITS)
        room.call(log_scripts.with_frame(KEYS, call, frame()))
    assert len(entries(room)) == 1


def test_each_frame_stands_between_the_places_before_and_behind_it(room: Room) -> None:
    room.call(log_scripts.append(KEYS, frame(count=5)))
    room.call(scripts.save(KEYS, []))
    room.call(log_scripts.append_facts(KEYS, {"a": "1", "b": "2"}, frame(count=2)))
    places = [f"{NONCE} 1-1 5", f"{NONCE} 1-3 7"]
    found = entries(room)
    assert [id for id, _ in found] == ["1-1", "1-3"]
    assert [fields["before"] for _, fields in found] == ["", places[0]]
    assert [fields["place"] for _, fields in found] == places
    assert room.hash(KEYS.meta)["log"] == places[1]
    assert room.hash(KEYS.facts) == {"": places[1], "a": "1", "b": "2"}
    removing = log_scripts.append_facts(KEYS, {"a": ""}, frame())
    assert room.call(removing) == [f"{NONCE} 1-4 8".encode()]
    assert room.hash(KEYS.facts) == {"": f"{NONCE} 1-4 8", "b": "2"}
    room.call(log_scripts.append(KEYS, frame()))
    assert room.call(removing) == [f"{NONCE} 1-5 9".encode()]


def test_the_openings_with_frames_are_listed(room: Room) -> None:
    room.call(log_scripts.append(KEYS, frame()))
    room.call(opening("nonce001"))
    room.call(opening("nonce002"))
    room.numbering = Numbering("nonce002")
    room.call(scripts.save(KEYS, []))
    for _ in range(2):
        room.call(log_scripts.append(KEYS, frame()))
    assert room.hash(KEYS.meta)["openings"] == f"{NONCE} 1-1,nonce002 3-2"
    assert entries(room)[1][1]["before"] == f"{NONCE} 1-1 1"


def test_a_lost_frame_comes_back_with_its_id_and_its_opening_unless_the_log_goes_on_behind_it(
    room: Room,
) -> None:
    for before, place, text in (
        ("", "other000 1-7 2", "first"),
        ("other000 1-7 2", "another0 2-1 3", "second"),
        ("other000 1-5 1", "other000 1-6 1", "too late"),
        ("another0 2-1 3", "another0 2-1 3", "again"),
    ):
        lost = LoggedFrame(before, place, {"all": text.encode()})
        room.call(log_scripts.restore_frame(KEYS, lost))
    assert [(id, fields["all"]) for id, fields in entries(room)] == [
        ("1-7", "first"),
        ("2-1", "second"),
    ]
    assert entries(room)[1][1]["before"] == "other000 1-7 2"
    meta = room.hash(KEYS.meta)
    assert meta["log"] == "another0 2-1 3"
    assert meta["openings"] == "other000 1-7,another0 2-1"


def test_messages_are_taken_and_places_move_in_one_step(room: Room) -> None:
    steps = [Step(3, "", "first"), Step(12, "", "other", "passed")]
    room.call(log_scripts.take(KEYS, steps, [(message(1), ["joe/1", "ann/1"])]))
    meta = room.hash(KEYS.meta)
    assert (meta["place 3"], meta["place 12"], meta["passed 12"]) == ("first", "other", "passed")
    assert "passed 3" not in meta
    assert room.queue("ann/1") == {BASE + 1: ""}
    room.call(log_scripts.take(KEYS, [Step(3, "first", "second")], [(message(2), ["ann/1"])]))
    assert room.hash(KEYS.meta)["place 3"] == "second"
    assert room.queue("ann/1") == {BASE + 1: "", BASE + 2: ""}


def test_a_call_that_is_made_again_in_another_opening_hands_nothing_over(room: Room) -> None:
    def take(n: int, before: str, behind: str, incarnation: str) -> None:
        early = {"joe/1": BatchMark(n, 6 + n, [BASE + n])}
        room.call(
            log_scripts.take(
                KEYS,
                [Step(3, before, behind)],
                [(message(n), ["joe/1"])],
                hand_overs=early,
                incarnation=incarnation,
            )
        )

    take(1, "", "a", NONCE)
    assert room.queue("joe/1") == {BASE + 1: "7 7 1 1 0"}
    take(2, "a", "b", "other000")
    assert room.queue("joe/1") == {BASE + 1: "7 7 1 1 0", BASE + 2: ""}


def test_ids_of_other_shards_say_nothing_about_the_newest_id_here(room: Room) -> None:
    room.call(log_scripts.take(KEYS, [Step(3, "", "a")], [(message(1), ["joe/1"])], newest=55))
    assert room.hash(KEYS.meta)["newest"] == f"{55:019d}"


def test_calls_enter_the_inbox_and_leave_it_with_their_answers(room: Room) -> None:
    calls = {"3 1": b"one", "3 2": b"two", "4 1": b"other"}
    room.call(
        log_scripts.take(KEYS, [Step(3, "", "a")], [(message(1), ["joe/1"])], others_calls=calls)
    )
    assert room.hash(KEYS.inbox) == {name: text.decode() for name, text in calls.items()}
    assert room.queue("joe/1") == {BASE + 1: ""}
    call = scripts.keep(KEYS, [(message(2), ["joe/1"])])
    answering = frame()._replace(answered=["3 1", "4 1"])
    room.call(noted(log_scripts.with_frame(KEYS, call, answering)))
    assert room.hash(KEYS.inbox) == {"3 2": "two"}
    assert room.queue("joe/1") == {BASE + 1: "", BASE + 2: ""}
    assert entries(room)[0][1]["all"] == "frame"
    answering = frame()._replace(answered=["3 2"])
    room.call(log_scripts.append_facts(KEYS, {"fact": "true"}, answering))
    assert room.hash(KEYS.inbox) == {}
    assert room.hash(KEYS.facts)["fact"] == "true"


def test_nothing_is_taken_from_another_place_and_the_reply_names_it(room: Room) -> None:
    room.call(log_scripts.take(KEYS, [Step(3, "", "first")], []))
    steps = [Step(4, "", "new"), Step(3, "", "first")]
    call = log_scripts.take(KEYS, steps, [(message(1), ["joe/1"])])
    assert room.call(call) == [b"PLACE", b"3", b"first"]
    assert "place 4" not in room.hash(KEYS.meta)
    assert room.queue("joe/1") == {}


def test_a_call_with_another_place_and_its_repeat_do_not_seem_to_have_been_done(
    room: Room,
) -> None:
    elsewhere = log_scripts.take(KEYS, [Step(3, "elsewhere", "new")], [(message(1), ["joe/1"])])
    room.call(log_scripts.take(KEYS, [Step(3, "", "there")], [(message(2), ["joe/1"])]))
    before = room.hash(KEYS.meta)
    for _ in range(2):
        assert room.call(elsewhere) == [b"PLACE", b"3", b"there"]
        assert room.hash(KEYS.meta) == before


def test_nor_does_a_call_that_the_store_has_refused_before_it(room: Room) -> None:
    room.call(log_scripts.take(KEYS, [Step(3, "", "there")], []))
    elsewhere = log_scripts.take(KEYS, [Step(3, "elsewhere", "new")], [])
    before = room.hash(KEYS.meta)
    # The second one was refused.
    numbers = f"{NONCE}-{2:012d} {NONCE}-{3:012d} 1 1"
    take = room.redis.register_script(elsewhere.script.source)
    _, *reply = take(keys=elsewhere.keys, args=[numbers, *elsewhere.args])
    assert reply == [b"PLACE", b"3", b"there"]
    assert room.hash(KEYS.meta) == {**before, "skipped": ""}


def test_frames_are_removed_and_linked_and_openings_without_frames_are_listed_no_more(
    room: Room,
) -> None:
    for nonce in ("nonce001", "nonce002"):
        for _ in range(3):
            room.call(log_scripts.append(KEYS, frame()))
        room.call(opening(nonce))
        room.numbering = Numbering(nonce)
    room.call(log_scripts.trim_log(KEYS, "1-2", ["1-3"], {"2-1": "place"}))
    assert [id for id, _ in entries(room)] == ["1-2", "2-1", "2-2", "2-3"]
    assert room.hash(KEYS.links) == {"2-1": "place"}
    assert room.hash(KEYS.meta)["openings"] == f"{NONCE} 1-1,nonce001 2-1"
    room.call(log_scripts.trim_log(KEYS, "2-3", [], {"2-1": ""}))
    assert room.hash(KEYS.meta)["openings"] == "nonce001 2-1"
    room.call(log_scripts.trim_log(KEYS, "2-4", [], {}))
    assert entries(room) == []
    assert room.hash(KEYS.meta)["openings"] == "nonce001 2-1"
    assert room.hash(KEYS.links) == {}


@pytest.mark.slow
def test_a_store_without_memory_moves_places_and_tells_them_but_takes_no_messages(
    valkey: ValkeyServer,
) -> None:
    with Redis.from_url(valkey.url) as redis:
        room = Room(redis)
        room.open()
        valkey.set(maxmemory="1")
        room.call(log_scripts.take(KEYS, [Step(3, "", "a")], []))
        room.call(log_scripts.append_facts(KEYS, {"fact": "true"}, frame()))
        for call in (
            log_scripts.take(KEYS, [Step(3, "a", "b")], [(message(1), ["joe/1"])]),
            log_scripts.append(KEYS, frame()),
            *framed()[:2],
        ):
            with pytest.raises(ResponseError, match="maxmemory"):
                room.call(call)
        assert room.hash(KEYS.meta)["place 3"] == "a"
