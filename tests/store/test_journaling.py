"""The journal's frames: in the store with what they tell of, once, whatever the connection does."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

from app.delivery.dead_letters import DeadLetter
from app.delivery.keeper import Batch, Kept, Mark
from app.delivery.messages import Message
from app.store import keeping, scripts
from app.store.journaling import Journaling
from app.store.scripts import Call
from tests.store.desk import (
    BASE,
    KEYS,
    Desk,
    batch,
    desk,
    ids,
    letter,
    mark,
    message,
    session,
    until,
)
from tests.store.model import EPOCH, Room
from tests.store.servers import ValkeyServer

STREAM = KEYS.journal("test")


class Notebook:
    """Tells of every change in words; a `Recorder`."""

    def kept(self, messages: Sequence[tuple[Message, Sequence[str]]]) -> bytes:
        return b"kept " + b" ".join(b"%d" % (message.id - BASE) for message, _ in messages)

    def marked(self, marks: Mapping[str, Mapping[int, Mark]]) -> bytes:
        return _words("marked", marks)

    def handed_over(self, batches: Mapping[str, Batch]) -> bytes:
        return _words("handed over", {key: batch.ids for key, batch in batches.items()})

    def settled(self, entries: Mapping[int, Sequence[str]]) -> bytes:
        told = [f"{id - BASE} {' '.join(keys)}" for id, keys in entries.items()]
        return f"settled {', '.join(told)}".encode()

    def refused(self, message: Message, keys: Sequence[str]) -> None:
        pass

    def buried(self, letters: Sequence[tuple[DeadLetter, str | None]]) -> bytes:
        return b"buried " + b" ".join(b"%d" % (int(letter.id) - BASE) for letter, _ in letters)

    def forgotten(self, left: Mapping[str, Sequence[int]]) -> bytes:
        return _words("forgotten", left)


def _words(verb: str, entries: Mapping[str, Any]) -> bytes:
    told = [f"{key} {' '.join(str(id - BASE) for id in ids)}" for key, ids in entries.items()]
    return f"{verb} {', '.join(told)}".encode()


@asynccontextmanager
async def writing(server: ValkeyServer) -> AsyncIterator[Desk]:
    async with desk(server, recorder=Notebook()) as at:
        yield at


@pytest.fixture
async def at(shared_valkey: ValkeyServer) -> AsyncIterator[Desk]:
    async with writing(shared_valkey) as at:
        yield at


def journal(server: ValkeyServer) -> list[tuple[int, str]]:
    """Numbers and frames."""
    entries = [fields for _, fields in server.ask("XRANGE", STREAM, "-", "+")]
    return [(int(fields[b"seq"]), fields[b"frame"].decode()) for fields in entries]


def frames(server: ValkeyServer) -> list[str]:
    """The frames, whose numbers have no gaps."""
    found = journal(server)
    assert [number for number, _ in found] == [*range(1, len(found) + 1)]
    return [frame for _, frame in found]


async def test_every_change_of_a_message_is_written_down_with_it(at: Desk) -> None:
    at.store.save(session("ann/1"))
    at.keep(message(1), "joe/1", "ann/1")
    at.keep(message(2), "joe/1")
    at.keep(message(3, key="k"), "joe/1")
    at.store.hand_over("ann/1", batch(1))
    at.store.mark("joe/1", [mark(1, 7)])
    at.store.settle("ann/1", ids(1))
    at.store.settle("joe/1", ids(1))
    at.store.bury([letter(9, of=2)], "joe/1")
    at.keep(message(4), "ann/1")
    at.store.forget("ann/1", ids(4))
    await at.answered()
    assert frames(at.server) == [
        "kept 1 2 4",
        "kept 3",
        "handed over ann/1 1",
        "marked joe/1 1",
        "settled 1 ann/1 joe/1",
        "buried 9",
        "forgotten ann/1 4",
    ]
    assert (at.queue("joe/1"), at.bodies(), at.dead()) == ({3: ""}, {3}, [9])


async def test_a_message_that_repeats_another_is_not_written_down(at: Desk) -> None:
    for n in (1, 2, 3):
        at.keep(message(n, key="k" if n < 3 else "other"), "joe/1")
    await at.answered()
    assert at.kept == {1: [Kept.KEPT], 2: [Kept.REPEATED], 3: [Kept.KEPT]}
    assert frames(at.server) == ["kept 1", "kept 3"]


async def test_a_frame_of_what_passes_has_its_place_among_the_others(at: Desk) -> None:
    at.keep(message(1), "joe/1")
    at.store.write_frame(b"alone", lambda _: None)
    at.store.settle("joe/1", ids(1))
    await at.answered()
    assert frames(at.server) == ["kept 1", "alone", "settled 1 joe/1"]


async def test_what_is_refused_is_not_written_down(valkey: ValkeyServer) -> None:
    async with writing(valkey) as at:
        at.keep(message(1), "joe/1")
        await at.answered()
        valkey.set(maxmemory="1", maxmemory_policy="noeviction")
        at.keep(message(2), "joe/1")
        at.store.bury([letter(7, of=1)], "joe/1")
        await at.answered()
        assert at.kept[2] == [Kept.REFUSED]
        assert (at.bodies(), at.dead()) == (set(), [7])
        # What might have been kept before the refusal is settled behind it.
        await at.answered()
        assert frames(valkey) == ["kept 1", "buried 7", "settled 2 joe/1"]


async def test_who_may_not_write_any_more_writes_no_frame_either(
    shared_valkey: ValkeyServer,
) -> None:
    async with writing(shared_valkey) as old, writing(shared_valkey) as new:
        old.store.bury([letter(1)], None)
        await until(lambda: old.events == ["fenced"])
        new.store.bury([letter(2)], None)
        await new.answered()
        assert (frames(shared_valkey), new.dead()) == (["buried 2"], [2])


async def test_a_lost_connection_writes_nothing_twice(at: Desk) -> None:
    for n in range(200):
        at.store.bury([letter(n)], None)
        at.store.flush()
        if n % 40 == 20:
            at.server.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            await asyncio.sleep(0)
    await at.answered()
    assert frames(at.server) == [f"buried {n}" for n in range(200)]
    assert at.dead() == [*range(200)]


async def test_a_crash_of_the_store_leaves_letters_with_their_frames() -> None:
    with ValkeyServer(appendonly="yes", appendfsync="always") as valkey:
        async with writing(valkey) as at:
            for n in range(500):
                at.store.bury([letter(n)], None)
                at.store.flush()
                if n == 250:
                    await asyncio.sleep(0)
                    valkey.kill()
            valkey.start()
            found = [f"buried {n}" for n in at.dead()]
            assert frames(valkey) == found
            await at.answered()
            assert frames(valkey) == [f"buried {n}" for n in range(500)]


async def test_numbers_go_on_in_the_next_process(shared_valkey: ValkeyServer) -> None:
    for n in range(3):
        async with writing(shared_valkey) as at:
            at.store.bury([letter(n)], None)
            await at.answered()
    assert frames(shared_valkey) == ["buried 0", "buried 1", "buried 2"]


async def test_an_emptied_store_numbers_anew_under_another_epoch(at: Desk) -> None:
    at.store.bury([letter(1)], None)
    await at.answered()
    [(_, before)] = at.server.ask("XRANGE", STREAM, "-", "+")
    at.server.ask("FLUSHALL")
    at.store.bury([letter(2)], None)
    await until(lambda: at.events == ["flushed"])
    await at.answered()
    assert frames(at.server) == ["buried 2"]
    [(_, after)] = at.server.ask("XRANGE", STREAM, "-", "+")
    assert before[b"epoch"] != after[b"epoch"]


async def test_frames_that_nobody_reads_are_bounded(
    shared_valkey: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "_MOST_FRAMES", 50)
    async with writing(shared_valkey) as at:
        for n in range(1000):
            at.store.mark("joe/1", [mark(n, 1)])
            at.store.flush()
        await at.answered()
    found = journal(shared_valkey)
    assert 50 <= len(found) <= 150
    # Whoever reads now sees that he has missed some.
    assert [number for number, _ in found] == [*range(1001 - len(found), 1001)]


async def test_calls_are_remembered_only_while_they_may_come_again(at: Desk) -> None:
    for n in range(100):
        at.store.bury([letter(n)], None)
        await at.answered()
    assert at.server.ask("ZCARD", KEYS.journal_calls("test")) == 1


async def test_without_a_journal_there_is_no_trace_of_one(shared_valkey: ValkeyServer) -> None:
    async with desk(shared_valkey) as at:
        at.keep(message(1), "joe/1")
        at.store.bury([letter(7, of=1)], "joe/1")
        await at.answered()
        assert not [name for name in at.names() if "journal" in name]
        assert not [name for name in at.hash(KEYS.meta) if "journal" in name]


# Repeated


@pytest.fixture
def redis(shared_valkey: ValkeyServer) -> Iterator[Redis]:
    with Redis.from_url(shared_valkey.url) as redis:
        yield redis


def calls(journaling: Journaling, count: int) -> list[Call]:
    return [journaling.carry(made(n), b"%d" % n, lambda _: None)[0] for n in range(count)]


def made(n: int) -> Call:
    match n % 3:
        case 0:
            return scripts.keep(KEYS, EPOCH, [(message(n), ["joe/1"])])
        case 1:
            return scripts.keep_keyed(KEYS, EPOCH, [(message(n, key=f"k{n}"), ["joe/1"])], 99)
        case _:
            return scripts.bury(KEYS, EPOCH, [(letter(n), None)])


# Of the calls, those that the store has carried out before their connection was lost.
attempts = st.lists(st.lists(st.booleans(), max_size=12), max_size=3)


@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(attempts)
def test_whichever_calls_are_repeated_each_frame_is_there_once(
    redis: Redis, shared_valkey: ValkeyServer, given: list[list[bool]]
) -> None:
    room = Room(redis)
    room.open()
    repeated = calls(Journaling(KEYS, "test", 1000), 12)
    for attempt in given:
        for call, was_carried_out in zip(repeated, attempt, strict=False):
            if was_carried_out:
                room.call(call)
                # And what they tell of is there with them.
                there = {*room.hash(KEYS.dead), *room.hash(KEYS.bodies)}
                assert set(frames(shared_valkey)) == {str(int(id) - BASE) for id in there}
    for call in repeated:
        room.call(call)
    assert sorted(map(int, frames(shared_valkey))) == [*range(12)]
