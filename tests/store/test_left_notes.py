"""What a process had written down when it was killed is told by the next."""

from functools import partial

import pytest

from holdfast.bayeux.restoring import restore, restore_without_session
from holdfast.delivery.moves import Move
from holdfast.delivery.outcomes import ACKED
from holdfast.journal.frame import decode
from holdfast.journal.journal_writer import JournalWriter
from holdfast.journal.schema import SETTLED, Event
from holdfast.journal.unfold import unfold
from holdfast.store.scripts import Take
from tests.store.desk import BASE, KEYS, Desk, batch, desk, ids, letter, message, session
from tests.store.servers import ValkeyServer
from tests.unit.bayeux.harness import House

NOW_US = BASE // 1000


class Office:
    """The journal of one process."""

    def __init__(self, at: Desk) -> None:
        self.writer = JournalWriter("test", at.store, now=0.0, now_ns=self.wall)
        at.store.note_for(self.writer)

    def wall(self) -> int:
        return NOW_US * 1000


def told(server: ValkeyServer) -> list[Event]:
    entries = server.ask("XRANGE", KEYS.journal("test"), "-", "+")
    return [event for _, fields in entries for event in unfold(decode(fields[b"frame"]))]


def live(at: Desk) -> None:
    """Something happens."""
    at.store.save(session("joe/1"))
    at.store.save(session("ann/1"))
    at.keep(message(1), "joe/1", "ann/1")
    at.keep(message(2, key="k"), "joe/1")
    at.store.mark_batch("ann/1", batch(1))
    at.store.settle("ann/1", ids(1), ACKED)
    at.store.dead_letter([letter(9, of=2)], "joe/1")


async def tell_what_was_left(at: Desk) -> None:
    """As a process does when it starts."""
    office = Office(at)
    await at.store.remove_reported(office.writer.find(await at.store.left_notes()))
    office.writer.flush(0.0)
    house = House(keeper=at.store, journal=office.writer)
    async for loaded in at.store.load(partial(restore_without_session, house.bayeux.life)):
        restore(house.bayeux.life, loaded.record, loaded.entries, house.now)
    await at.answered()
    office.writer.flush(0.0)
    await at.answered()
    assert house.balances()


async def test_what_was_written_down_and_not_told_is_told_by_the_next_once(
    shared_valkey: ValkeyServer,
) -> None:
    async with desk(shared_valkey) as at:
        Office(at)
        live(at)
        await at.answered()
    assert told(shared_valkey) == []
    for _ in range(2):
        async with desk(shared_valkey) as at:
            await tell_what_was_left(at)
            assert await at.store.left_notes() == {}
    found = [(e.kind, (e.msg or 0) - BASE, e.receiver, e.copies) for e in told(shared_valkey)]
    assert found == [
        ("published", 1, None, 2),
        ("published", 2, None, 1),
        ("handed", 1, "ann/1", None),
        ("acked", 1, "ann/1", None),
        ("dead", 2, "joe/1", None),
    ]


async def test_a_move_that_was_not_told_is_told_by_the_next(shared_valkey: ValkeyServer) -> None:
    async with desk(shared_valkey) as at:
        Office(at)
        at.store.save(session("joe/1"))
        at.keep(message(1), "joe/0")
        at.store.move([Move(message(1), "joe/0", ["joe/1"], 1, 1)])
        await at.answered()
    async with desk(shared_valkey) as at:
        await tell_what_was_left(at)
    found = [(e.kind, e.receiver, e.copies, e.size) for e in told(shared_valkey)]
    assert found == [
        ("published", None, 1, len(message(1).wire)),
        ("published", None, 1, 0),
        ("moved", "joe/0", None, None),
    ]


async def test_what_was_told_in_time_is_not_told_again(shared_valkey: ValkeyServer) -> None:
    async with desk(shared_valkey) as at:
        office = Office(at)
        live(at)
        await at.answered()
        office.writer.flush(0.0)
        at.store.settle("joe/1", ids(1), ACKED)
        await at.answered()
    assert len(told(shared_valkey)) == 5
    async with desk(shared_valkey) as at:
        await tell_what_was_left(at)
    assert [event.kind for event in told(shared_valkey)[5:]] == ["acked"]


async def test_what_a_session_left_is_told_by_the_next_if_nobody_else_could(
    shared_valkey: ValkeyServer,
) -> None:
    async with desk(shared_valkey) as at:
        Office(at)
        at.store.save(session("ann/1"))
        at.keep(message(1), "joe/1", "ann/1")
        at.keep(message(2), "joe/1")
        at.store.forget("joe/1", ids(1, 2))
        await at.answered()
    async with desk(shared_valkey) as at:
        await tell_what_was_left(at)
        assert await at.store.left_notes() == {}
    found = [(e.kind, (e.msg or 0) - BASE, e.receiver, e.code) for e in told(shared_valkey)[2:]]
    assert found == [
        ("discarded", 1, "joe/1", "session_ended"),
        ("discarded", 2, "joe/1", "session_ended"),
    ]


async def test_what_becomes_of_what_a_session_left_is_told_once(
    shared_valkey: ValkeyServer,
) -> None:
    async with desk(shared_valkey) as at:
        office = Office(at)
        at.keep(message(1), "joe/1")
        at.store.forget("joe/1", ids(1))
        # It was in hands, and somebody has acknowledged it after all.
        office.writer.journal.delivered("acked", [message(1)], "joe/1", NOW_US)
        # The frame is on its way before the store has said anything.
        office.writer.flush(0.0)
        await at.answered()
        office.writer.flush(0.0)
        await at.answered()
        left = await at.store.left_notes()
    async with desk(shared_valkey) as at:
        office = Office(at)
        office.writer.find(left)
        office.writer.flush(0.0)
        await at.answered()
    assert sorted(event.kind for event in told(shared_valkey)) == ["acked", "published"]


def ended(server: ValkeyServer) -> list[tuple[str, int, str | None, str | None]]:
    """What the journal tells of ends."""
    events = [event for event in told(server) if event.kind in SETTLED]
    return [(e.kind, (e.msg or 0) - BASE, e.receiver, e.code) for e in events]


async def test_the_next_process_notes_entries_of_a_session_that_had_just_ended(
    shared_valkey: ValkeyServer,
) -> None:
    async with desk(shared_valkey) as at:
        Office(at)
        for key in ("joe/1", "ann/1"):
            at.store.save(session(key))
        at.store.forget("joe/1", ())
        # They were on their way, and the process dies before it has heard of them.
        at.keep(message(1), "joe/1", "ann/1")
        at.keep(message(2), "joe/1")
        await at.answered()
    for _ in range(2):
        async with desk(shared_valkey) as at:
            await tell_what_was_left(at)
            assert (at.queue("joe/1"), at.queue("ann/1"), at.bodies()) == ({}, {1: ""}, {1})
    assert ended(shared_valkey) == [
        ("discarded", 1, "joe/1", "session_ended"),
        ("discarded", 2, "joe/1", "session_ended"),
    ]


@pytest.mark.parametrize("dies", ["at once", "when it has told"])
async def test_what_a_session_left_in_the_store_is_told_once(
    shared_valkey: ValkeyServer, dies: str
) -> None:
    async with desk(shared_valkey) as at:
        Office(at)
        for key in ("joe/1", "ann/1"):
            at.store.save(session(key))
            at.keep(message(1), key)
            at.store.forget(key, ids(1))
        await at.answered()
        # The process died behind the first of its two calls; and one session is there again, and
        # has had its copy replayed.
        at.store.save(session("ann/1"))
        at.keep(message(1), "joe/1", "ann/1")
        await at.answered()
        left = await at.store.left_notes()
    async with desk(shared_valkey) as at:
        office = Office(at)
        await at.store.remove_reported(office.writer.find(left))
        if dies == "when it has told":
            office.writer.flush(0.0)
        await at.answered()
    async with desk(shared_valkey) as at:
        await tell_what_was_left(at)
        assert (at.queue("joe/1"), at.queue("ann/1")) == ({}, {1: ""})
    assert sorted(ended(shared_valkey)) == [
        ("discarded", 1, "ann/1", "session_ended"),
        ("discarded", 1, "joe/1", "session_ended"),
    ]


async def test_what_was_replayed_to_a_session_after_it_had_left_is_told_of_by_itself(
    shared_valkey: ValkeyServer,
) -> None:
    async with desk(shared_valkey) as at:
        at.store.dead_letter([letter(9, of=1)], None)
        await at.answered()
        Office(at)
        at.store.save(session("joe/1"))
        at.keep(message(1), "joe/1")
        at.store.forget("joe/1", ids(1))
        at.store.save(session("joe/1"))
        takes = [Take(letter(9, of=1), "joe/1", True)]
        await at.store.run(lambda epoch: at.store.replay_take(epoch, str(BASE), takes)[0])
        at.store.forget("joe/1", ())
        await at.answered()
    async with desk(shared_valkey) as at:
        await tell_what_was_left(at)
        assert (at.queue("joe/1"), at.bodies()) == ({}, set())
    assert ended(shared_valkey) == 2 * [("discarded", 1, "joe/1", "session_ended")]


async def test_which_letter_was_replayed_is_told_by_the_next(shared_valkey: ValkeyServer) -> None:
    async with desk(shared_valkey) as at:
        at.store.save(session("joe/1"))
        at.store.dead_letter([letter(9, of=2)], None)
        Office(at)
        takes = [Take(letter(9, of=2), "joe/1", True)]
        taken = at.store.run(lambda epoch: at.store.replay_take(epoch, str(BASE), takes)[0])
        assert await taken == [b"taken"]
    async with desk(shared_valkey) as at:
        await tell_what_was_left(at)
    [_, found] = told(shared_valkey)
    assert (found.kind, found.receiver) == ("replayed", "joe/1")
    assert (found.letter, found.generation) == (BASE + 9, 1)


async def test_a_note_that_cannot_be_read_is_missed_and_goes(shared_valkey: ValkeyServer) -> None:
    async with desk(shared_valkey) as at:
        office = Office(at)
        office.writer.find({1: b"", 2: b"[99,[],[]]", 3: b"[1,[],[[1]]]", 4: b"[1,2]"})
        office.writer.flush(0.0)
        await at.answered()
    assert [(event.kind, event.number) for event in told(shared_valkey)] == [("dropped", 4)]
