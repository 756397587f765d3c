"""Notes and frames: stored once, with the change that they report, whatever the connection does."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.letters.dead import DeadLetter
from holdfast.delivery.messages.marks import NO_HAND_OVERS, BatchMark
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.outcomes import ACKED, DISCARDED, EXPIRED, Outcome
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.delivery.ports.journal_port import DeliveryJournal
from holdfast.store.format import scripts
from holdfast.store.format.publish_keys import KeyLimits
from holdfast.store.format.scripts import ScriptCall, Take
from holdfast.store.writing import turn_writer
from holdfast.store.writing.journaling import Journaling
from tests.effort import TIMES
from tests.store.model import EPOCH, Room
from tests.store.servers import ValkeyServer
from tests.store.store_process import (
    BASE,
    KEYS,
    StoreProcess,
    batch,
    ids,
    letter,
    mark,
    message,
    session,
    store_process,
    until,
)

pytestmark = pytest.mark.untraced

STREAM = KEYS.journal("test")


class Notebook(DeliveryJournal):
    """Notes every change in words."""

    is_writing = True

    def __init__(self) -> None:
        # The numbers of notes, and whether they are in the store.
        self.heard: list[tuple[int, bool]] = []

    def answered(self, number: int, *, is_there: bool, postponed: object = None) -> None:
        self.heard.append((number, is_there))

    def note_kept(
        self,
        messages: Sequence[tuple[Message, Sequence[str]]],
        early: Mapping[str, BatchMark] = NO_HAND_OVERS,
    ) -> bytes:
        return b"kept " + b" ".join(b"%d" % (message.id - BASE) for message, _ in messages)

    def note_marked(
        self,
        marked: Mapping[str, Collection[int]],
        hand_overs: Mapping[str, Sequence[tuple[int, int]]],
    ) -> bytes:
        again = {key: [id for id, _ in each] for key, each in hand_overs.items()}
        return _words("marked", again)

    def note_handed_over(self, batches: Mapping[str, BatchMark]) -> bytes:
        return _words("handed over", {key: batch.ids for key, batch in batches.items()})

    def note_settled(self, entries: Mapping[int, Sequence[str]], outcome: Outcome) -> bytes:
        parts = [f"{id - BASE} {' '.join(keys)}" for id, keys in entries.items()]
        how = outcome.reason.value if outcome.reason else outcome.kind
        return f"{how} {', '.join(parts)}".encode()

    def note_left(self, sessions: Mapping[str, Sequence[int]]) -> bytes:
        return _words("left", sessions)

    def note_replayed(self, letters: Sequence[tuple[DeadLetter, str]]) -> bytes:
        parts = [f"{int(letter.id) - BASE} {key}" for letter, key in letters]
        return "\n".join(["replayed [[", *parts]).encode()

    def note_dead(self, letters: Sequence[tuple[DeadLetter, str | None]]) -> bytes:
        return b"buried " + b" ".join(b"%d" % (int(letter.id) - BASE) for letter, _ in letters)


def _words(verb: str, entries: Mapping[str, Any]) -> bytes:
    parts = [f"{key} {' '.join(str(id - BASE) for id in ids)}" for key, ids in entries.items()]
    return f"{verb} {', '.join(parts)}".encode()


@asynccontextmanager
async def writing(
    server: ValkeyServer, notebook: Notebook | None = None
) -> AsyncIterator[StoreProcess]:
    async with store_process(server, journal=notebook or Notebook()) as at:
        yield at


@pytest.fixture
async def at(shared_valkey: ValkeyServer) -> AsyncIterator[StoreProcess]:
    async with writing(shared_valkey) as at:
        yield at


def notes(server: ValkeyServer) -> list[str]:
    """The notes that no frame covers yet."""
    found = server.ask("HGETALL", KEYS.notes("test"))
    found.pop(b"call", None)
    return [found[number].decode() for number in sorted(found, key=int)]


def journal(server: ValkeyServer) -> list[tuple[int, str]]:
    """The frames with their numbers."""
    entries = [fields for _, fields in server.ask("XRANGE", STREAM, "-", "+")]
    return [(int(fields[b"seq"]), fields[b"frame"].decode()) for fields in entries]


def frames(server: ValkeyServer) -> list[str]:
    """The frames, whose numbers have no gaps."""
    found = journal(server)
    assert [number for number, _ in found] == [*range(1, len(found) + 1)]
    return [frame for _, frame in found]


async def test_every_change_of_a_message_leaves_a_note_in_the_store(at: StoreProcess) -> None:
    at.store.save(session("ann/1"))
    at.keep(message(1), "joe/1", "ann/1")
    at.keep(message(2), "joe/1")
    at.keep(message(3, key="k"), "joe/1")
    at.store.mark_batch("ann/1", batch(1))
    at.store.mark("joe/1", [mark(1, 7)])
    at.store.settle("ann/1", ids(1), ACKED)
    at.store.settle("joe/1", ids(1), ACKED)
    at.store.dead_letter([letter(9, of=2)], "joe/1")
    at.store.forget("joe/1", ids(3))
    await at.answered()
    assert notes(at.server) == [
        "kept 1 2",
        "kept 3",
        "handed over ann/1 1",
        "marked joe/1 1",
        "acked 1 ann/1 joe/1",
        "buried 9",
        "left joe/1 3",
    ]
    assert (at.queue("joe/1"), at.bodies(), at.dead()) == ({}, set(), [9])


async def test_the_outcome_of_a_message_is_noted_for_each_receiver(at: StoreProcess) -> None:
    for key in ("joe/1", "ann/1", "eve/1"):
        at.store.save(session(key))
    at.keep(message(1), "joe/1", "ann/1", "eve/1")
    at.store.settle("joe/1", ids(1), EXPIRED)
    at.store.settle("ann/1", ids(1), ACKED)
    at.store.settle("eve/1", ids(1), DISCARDED[Reason.CLEARED])
    await at.answered()
    assert notes(at.server) == ["kept 1", "expired 1 joe/1", "acked 1 ann/1", "cleared 1 eve/1"]
    assert at.bodies() == set()


async def test_each_hand_over_of_one_turn_is_noted(at: StoreProcess) -> None:
    at.store.save(session("joe/1"))
    at.store.save(session("ann/1"))
    for n in (1, 2):
        at.keep(message(n), "joe/1", "ann/1")
    await at.answered()
    at.store.mark("joe/1", [mark(1, 7)])
    # The hand-over failed at once, and there was another.
    at.store.mark("joe/1", [mark(1, position=7)])
    at.store.mark("joe/1", [mark(1, 8)])
    at.store.mark_batch("ann/1", batch(1))
    at.store.settle("ann/1", ids(1), ACKED)
    at.store.mark_batch("ann/1", batch(2, number=2, seq=2))
    await at.answered()
    assert notes(at.server) == [
        "kept 1 2",
        "handed over ann/1 1",
        "marked joe/1 1 1",
        "acked 1 ann/1",
        "handed over ann/1 2",
    ]


async def test_a_repeated_message_is_not_noted(
    shared_valkey: ValkeyServer,
) -> None:
    notebook = Notebook()
    async with writing(shared_valkey, notebook) as at:
        for n in (1, 2, 3):
            at.keep(message(n, key="k" if n < 3 else "other"), "joe/1")
        await at.answered()
        assert at.kept == {
            1: [PersistOutcome.KEPT],
            2: [PersistOutcome.REPEATED],
            3: [PersistOutcome.KEPT],
        }
        assert notes(at.server) == ["kept 1", "kept 3"]
    assert notebook.heard == [(1, True), (2, False), (3, True)]


async def test_letters_are_noted_as_replayed_only_by_the_job_that_took_them(
    at: StoreProcess,
) -> None:
    at.store.save(session("joe/1"))
    at.store.dead_letter([letter(n) for n in (1, 2, 3)], None)
    await at.answered()
    for taken, expected in (((1, 3), [b"taken", b"taken"]), ((3, 2), [b"replayed", b"taken"])):
        takes = [Take(letter(n), "joe/1", True) for n in taken]
        job = str(BASE + taken[0])
        call, number = await at.store.journal.replay_take(job, takes)
        assert await at.store.run(call) == expected
        assert number is not None
    call, _ = await at.store.journal.replay_take("7", [Take(letter(9), "joe/1", True)])
    assert await at.store.run(call) == [b"gone"]
    assert notes(at.server) == [
        "buried 1 2 3",
        "replayed [[1 joe/1,3 joe/1]]",
        "replayed [[2 joe/1]]",
    ]
    assert at.queue("joe/1").keys() == {1, 2, 3}


async def test_a_frame_replaces_the_notes_that_it_covers(at: StoreProcess) -> None:
    for n in range(1, 4):
        at.store.dead_letter([letter(n)], None)
        at.store.flush()
    at.store.journal.write_frame(b"the first two", [1, 2])
    await at.answered()
    assert (frames(at.server), notes(at.server)) == (["the first two"], ["buried 3"])
    assert await at.store.journal.left_notes() == {3: b"buried 3"}


async def test_a_frame_waits_for_the_writes_that_its_turn_had_no_time_for(
    at: StoreProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_writer, "_TURN_S", 0.0)
    at.store.dead_letter([letter(n) for n in range(1000)], None)
    at.store.journal.write_frame(b"a frame")
    assert at.link.unanswered == 1
    assert frames(at.server) == []
    await at.answered()
    assert (frames(at.server), len(at.dead())) == (["a frame"], 1000)


async def test_a_frame_can_replace_thousands_of_notes(at: StoreProcess) -> None:
    count = 2500
    for n in range(count):
        at.store.dead_letter([letter(n)], None)
        at.store.flush()
    at.store.journal.write_frame(b"all", [*range(1, count + 1)])
    await at.answered()
    assert (frames(at.server), notes(at.server)) == (["all"], [])


async def test_a_message_that_a_full_store_refuses_is_not_noted_as_kept(
    valkey: ValkeyServer,
) -> None:
    notebook = Notebook()
    async with writing(valkey, notebook) as at:
        at.keep(message(1), "joe/1")
        await at.answered()
        valkey.set(maxmemory="1", maxmemory_policy="noeviction")
        at.keep(message(2), "joe/1")
        at.store.dead_letter([letter(7, of=1)], "joe/1")
        await at.answered()
        assert at.kept[2] == [PersistOutcome.REFUSED]
        assert (at.bodies(), at.dead()) == (set(), [7])
        assert notes(valkey) == ["kept 1", "buried 7"]
        # Frames are smaller than the notes that go with them.
        at.store.journal.write_frame(b"frame", [1, 2, 3])
        await at.answered()
        assert (frames(valkey), notes(valkey)) == (["frame"], [])
    assert notebook.heard == [(1, True), (2, False), (3, True)]


async def test_a_process_without_the_write_right_writes_neither_notes_nor_frames(
    shared_valkey: ValkeyServer,
) -> None:
    async with writing(shared_valkey) as old, writing(shared_valkey) as new:
        old.store.dead_letter([letter(1)], None)
        old.store.journal.write_frame(b"old")
        await until(lambda: old.events == ["fenced"])
        new.store.dead_letter([letter(2)], None)
        new.store.journal.write_frame(b"new")
        await new.answered()
        assert (frames(shared_valkey), new.dead()) == (["new"], [2])
        assert notes(shared_valkey) == ["buried 2"]


async def test_a_lost_connection_repeats_no_note_and_no_frame(at: StoreProcess) -> None:
    for n in range(200):
        at.store.dead_letter([letter(n)], None)
        at.store.flush()
        if n % 10 == 9:
            at.store.journal.write_frame(b"%d" % (n // 10))
        if n % 40 == 20:
            at.server.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            await asyncio.sleep(0)
    await at.answered()
    assert notes(at.server) == [f"buried {n}" for n in range(200)]
    assert frames(at.server) == [str(n) for n in range(20)]
    assert at.dead() == [*range(200)]


async def test_a_crashed_store_has_a_note_for_each_letter_that_it_has() -> None:
    notebook = Notebook()

    def write_frames(at: StoreProcess) -> None:
        """Write frames for the notes that were answered."""
        for number, _ in notebook.heard:
            at.store.journal.write_frame(b"buried %d" % (number - 1), [number])
        notebook.heard.clear()

    with ValkeyServer(appendonly="yes", appendfsync="always") as valkey:
        async with writing(valkey, notebook) as at:
            for n in range(500):
                at.store.dead_letter([letter(n)], None)
                at.store.flush()
                if n == 250:
                    await asyncio.sleep(0.01)
                    valkey.kill()
            valkey.start()
            assert notes(valkey) == [f"buried {n}" for n in at.dead()]
            write_frames(at)
            await at.answered()
            write_frames(at)
            await at.answered()
            assert at.dead() == [*range(500)]
            assert frames(valkey) == [f"buried {n}" for n in range(500)]
            assert notes(valkey) == []


async def test_frame_numbers_continue_in_the_next_process(shared_valkey: ValkeyServer) -> None:
    for n in range(3):
        async with writing(shared_valkey) as at:
            at.store.journal.write_frame(b"%d" % n)
            await at.answered()
    assert frames(shared_valkey) == ["0", "1", "2"]


async def test_frame_numbers_of_an_emptied_store_begin_again_under_another_epoch(
    at: StoreProcess,
) -> None:
    at.store.journal.write_frame(b"before")
    await at.answered()
    [(_, before)] = at.server.ask("XRANGE", STREAM, "-", "+")
    at.server.ask("FLUSHALL")
    at.store.dead_letter([letter(2)], None)
    await until(lambda: at.events == ["emptied"])
    at.store.journal.write_frame(b"after")
    await at.answered()
    await at.answered()
    assert frames(at.server) == ["after"]
    [(_, after)] = at.server.ask("XRANGE", STREAM, "-", "+")
    assert before[b"epoch"] != after[b"epoch"]


async def test_a_store_without_a_journal_has_no_redis_keys_of_one(
    shared_valkey: ValkeyServer,
) -> None:
    async with store_process(shared_valkey) as at:
        at.keep(message(1), "joe/1")
        at.store.dead_letter([letter(7, of=1)], "joe/1")
        await at.answered()
        assert not [name for name in at.names() if "journal" in name]
        assert not [name for name in at.hash(KEYS.meta) if "journal" in name]


# Repeated


def calls(journaling: Journaling, count: int) -> list[ScriptCall]:
    """Calls that carry notes; every fourth writes a frame, which replaces the notes before it."""
    made: list[ScriptCall] = []
    for n in range(count):
        if n % 4 == 3:
            numbers = range(3 * (n // 4) + 1, 3 * (n // 4) + 4)
            made.append(journaling.frame(EPOCH, b"%d" % n, numbers))
        else:
            call, _ = journaling.annotate(change(n), b"%d" % n)
            made.append(call)
    return made


def change(n: int) -> ScriptCall:
    match n % 4:
        case 0:
            return scripts.keep(KEYS, [(message(n), ["joe/1"])])
        case 1:
            keyed = [(message(n, key=f"k{n}"), ["joe/1"])]
            return scripts.keep_keyed(KEYS, keyed, KeyLimits(clock=0, most=99))
        case _:
            return scripts.dead_letter(KEYS, [(letter(n), None)])


def reported(server: ValkeyServer) -> set[int]:
    """The changes that frames or notes report."""
    changes = {n for frame in frames(server) for n in range(int(frame) - 3, int(frame))}
    return changes | set(map(int, notes(server)))


# How many more calls the store carries out before the connection is lost, and how many of these
# are answered.
attempts = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=4)


@pytest.mark.slow
@settings(
    max_examples=20 * TIMES,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(attempts)
def test_each_change_is_stored_with_its_note_once_whichever_calls_are_repeated(
    redis: Redis, shared_valkey: ValkeyServer, given: list[tuple[int, int]]
) -> None:
    room = Room(redis)
    room.open()
    repeated = calls(Journaling(KEYS, "test"), 12)
    answered = 0
    for carried_out, heard_of in [*given, *[(12, 12)] * 4]:
        end = min(answered + carried_out, 12)
        # A frame is written when the notes that it covers have been answered.
        end = min(end, next((n for n in range(answered + 1, 12) if n % 4 == 3), 12))
        for call in repeated[answered:end]:
            room.call(call)
            # The changes that they report are there with them.
            there = {*room.hash(KEYS.dead), *room.hash(KEYS.bodies)}
            assert reported(shared_valkey) == {int(id) - BASE for id in there}
        answered = min(answered + heard_of, end)
    assert frames(shared_valkey) == ["3", "7", "11"]
    assert notes(shared_valkey) == []


def test_a_note_and_its_frame_that_are_both_repeated_leave_one_frame_and_no_note(
    redis: Redis, shared_valkey: ValkeyServer
) -> None:
    room = Room(redis)
    room.open()
    journaling = Journaling(KEYS, "test")
    leaving, number = journaling.annotate(scripts.forget(KEYS, ["joe/1"]), b"left")
    frame = journaling.frame(EPOCH, b"what became of it", [number])
    for _ in range(2):
        room.call(leaving)
        room.call(frame)
    assert (frames(shared_valkey), notes(shared_valkey)) == (["what became of it"], [])
