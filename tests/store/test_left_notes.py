"""The next process reports the notes that a killed one left in the store."""

from functools import partial

import pytest

from holdfast.bayeux.sessions.restoring import restore, restore_without_session
from holdfast.delivery.messages.outcomes import ACKED, Move
from holdfast.journal.frame import decode
from holdfast.journal.schema import SETTLED, Event
from holdfast.journal.unfold import unfold
from holdfast.journal.writer import JournalWriter
from holdfast.store.format.scripts import Take
from tests.store.servers import ValkeyServer
from tests.store.store_process import (
    BASE,
    KEYS,
    StoreProcess,
    batch,
    ids,
    letter,
    message,
    session,
    store_process,
)
from tests.unit.bayeux.harness import Server

NOW_US = BASE // 1000


class Journalling:
    """The journal of one process."""

    def __init__(self, at: StoreProcess) -> None:
        self.writer = JournalWriter("test", at.store.journal, now=0.0, now_ns=self.wall)
        at.store.journal.note_for(self.writer)

    def wall(self) -> int:
        return NOW_US * 1000


def journalled(server: ValkeyServer) -> list[Event]:
    entries = server.ask("XRANGE", KEYS.journal("test"), "-", "+")
    return [event for _, fields in entries for event in unfold(decode(fields[b"frame"]))]


def make_changes(at: StoreProcess) -> None:
    """Make some changes."""
    at.store.save(session("joe/1"))
    at.store.save(session("ann/1"))
    at.keep(message(1), "joe/1", "ann/1")
    at.keep(message(2, key="k"), "joe/1")
    at.store.mark_batch("ann/1", batch(1))
    at.store.settle("ann/1", ids(1), ACKED)
    at.store.dead_letter([letter(9, of=2)], "joe/1")


async def report_left_notes(at: StoreProcess) -> None:
    """As a process does when it starts."""
    journalling = Journalling(at)
    await at.store.remove_reported(
        journalling.writer.report_left_notes(await at.store.journal.left_notes())
    )
    journalling.writer.flush(0.0)
    server = Server(keeper=at.store, journal=journalling.writer)
    async for loaded in at.store.load(partial(restore_without_session, server.bayeux.life)):
        restore(server.bayeux.life, loaded.record, loaded.entries, server.now)
    await at.answered()
    journalling.writer.flush(0.0)
    await at.answered()
    assert server.balances()


async def test_the_next_process_reports_left_notes_once(
    shared_valkey: ValkeyServer,
) -> None:
    async with store_process(shared_valkey) as at:
        Journalling(at)
        make_changes(at)
        await at.answered()
    assert journalled(shared_valkey) == []
    for _ in range(2):
        async with store_process(shared_valkey) as at:
            await report_left_notes(at)
            assert await at.store.journal.left_notes() == {}
    found = [(e.kind, (e.msg or 0) - BASE, e.receiver, e.copies) for e in journalled(shared_valkey)]
    assert found == [
        ("published", 1, None, 2),
        ("published", 2, None, 1),
        ("handed", 1, "ann/1", None),
        ("acked", 1, "ann/1", None),
        ("dead", 2, "joe/1", None),
    ]


async def test_the_next_process_reports_a_move_from_its_note(shared_valkey: ValkeyServer) -> None:
    async with store_process(shared_valkey) as at:
        Journalling(at)
        at.store.save(session("joe/1"))
        at.keep(message(1), "joe/0")
        at.store.move([Move(message(1), "joe/0", ["joe/1"], 1, 1)])
        await at.answered()
    async with store_process(shared_valkey) as at:
        await report_left_notes(at)
    found = [(e.kind, e.receiver, e.copies, e.size) for e in journalled(shared_valkey)]
    assert found == [
        ("published", None, 1, len(message(1).wire)),
        ("moved", "joe/0", None, None),
        ("entered", "joe/1", None, None),
    ]


async def test_the_next_process_does_not_report_events_again_that_are_in_a_frame(
    shared_valkey: ValkeyServer,
) -> None:
    async with store_process(shared_valkey) as at:
        journalling = Journalling(at)
        make_changes(at)
        await at.answered()
        journalling.writer.flush(0.0)
        at.store.settle("joe/1", ids(1), ACKED)
        await at.answered()
    assert len(journalled(shared_valkey)) == 5
    async with store_process(shared_valkey) as at:
        await report_left_notes(at)
    assert [event.kind for event in journalled(shared_valkey)[5:]] == ["acked"]


async def test_the_next_process_reports_the_entries_that_an_ended_session_left(
    shared_valkey: ValkeyServer,
) -> None:
    async with store_process(shared_valkey) as at:
        Journalling(at)
        at.store.save(session("ann/1"))
        at.keep(message(1), "joe/1", "ann/1")
        at.keep(message(2), "joe/1")
        at.store.forget("joe/1", ids(1, 2))
        await at.answered()
    async with store_process(shared_valkey) as at:
        await report_left_notes(at)
        assert await at.store.journal.left_notes() == {}
    found = [
        (e.kind, (e.msg or 0) - BASE, e.receiver, e.code) for e in journalled(shared_valkey)[2:]
    ]
    assert found == [
        ("discarded", 1, "joe/1", "session_ended"),
        ("discarded", 2, "joe/1", "session_ended"),
    ]


async def test_an_entry_that_is_acked_as_its_session_ends_is_not_also_reported_as_discarded(
    shared_valkey: ValkeyServer,
) -> None:
    async with store_process(shared_valkey) as at:
        journalling = Journalling(at)
        at.keep(message(1), "joe/1")
        at.store.forget("joe/1", ids(1))
        # It was in flight, and its receiver has acked it after all.
        journalling.writer.journal.delivered("acked", [message(1)], "joe/1", NOW_US)
        # The frame is sent before the store has answered anything.
        journalling.writer.flush(0.0)
        await at.answered()
        journalling.writer.flush(0.0)
        await at.answered()
        left = await at.store.journal.left_notes()
    async with store_process(shared_valkey) as at:
        journalling = Journalling(at)
        journalling.writer.report_left_notes(left)
        journalling.writer.flush(0.0)
        await at.answered()
    assert sorted(event.kind for event in journalled(shared_valkey)) == ["acked", "published"]


def ended(server: ValkeyServer) -> list[tuple[str, int, str | None, str | None]]:
    """The settlements in the journal."""
    events = [event for event in journalled(server) if event.kind in SETTLED]
    return [(e.kind, (e.msg or 0) - BASE, e.receiver, e.code) for e in events]


async def test_the_next_process_discards_and_reports_entries_that_arrived_for_an_ended_session(
    shared_valkey: ValkeyServer,
) -> None:
    async with store_process(shared_valkey) as at:
        Journalling(at)
        for key in ("joe/1", "ann/1"):
            at.store.save(session(key))
        at.store.forget("joe/1", ())
        # These were on their way to the store, and the process dies before they are answered.
        at.keep(message(1), "joe/1", "ann/1")
        at.keep(message(2), "joe/1")
        await at.answered()
    for _ in range(2):
        async with store_process(shared_valkey) as at:
            await report_left_notes(at)
            assert (at.queue("joe/1"), at.queue("ann/1"), at.bodies()) == ({}, {1: ""}, {1})
    assert ended(shared_valkey) == [
        ("discarded", 1, "joe/1", "session_ended"),
        ("discarded", 2, "joe/1", "session_ended"),
    ]


@pytest.mark.parametrize("dies", ["before it reports", "after it reports"])
async def test_entries_that_an_ended_session_left_in_the_store_are_reported_once(
    shared_valkey: ValkeyServer, dies: str
) -> None:
    async with store_process(shared_valkey) as at:
        Journalling(at)
        for key in ("joe/1", "ann/1"):
            at.store.save(session(key))
            at.keep(message(1), key)
            at.store.forget(key, ids(1))
        await at.answered()
        # The process died after the first of its two calls; and one session is there again, and
        # got its copy by a replay.
        at.store.save(session("ann/1"))
        at.keep(message(1), "joe/1", "ann/1")
        await at.answered()
        left = await at.store.journal.left_notes()
    async with store_process(shared_valkey) as at:
        journalling = Journalling(at)
        await at.store.remove_reported(journalling.writer.report_left_notes(left))
        if dies == "after it reports":
            journalling.writer.flush(0.0)
        await at.answered()
    async with store_process(shared_valkey) as at:
        await report_left_notes(at)
        assert (at.queue("joe/1"), at.queue("ann/1")) == ({}, {1: ""})
    assert sorted(ended(shared_valkey)) == [
        ("discarded", 1, "ann/1", "session_ended"),
        ("discarded", 1, "joe/1", "session_ended"),
    ]


async def test_a_replayed_copy_is_reported_apart_from_the_copy_that_its_ended_session_left(
    shared_valkey: ValkeyServer,
) -> None:
    async with store_process(shared_valkey) as at:
        at.store.dead_letter([letter(9, of=1)], None)
        await at.answered()
        Journalling(at)
        at.store.save(session("joe/1"))
        at.keep(message(1), "joe/1")
        at.store.forget("joe/1", ids(1))
        at.store.save(session("joe/1"))
        takes = [Take(letter(9, of=1), "joe/1", True)]
        call, _ = await at.store.journal.replay_take(str(BASE), takes)
        await at.store.run(call)
        at.store.forget("joe/1", ())
        await at.answered()
    async with store_process(shared_valkey) as at:
        await report_left_notes(at)
        assert (at.queue("joe/1"), at.bodies()) == ({}, set())
    assert ended(shared_valkey) == 2 * [("discarded", 1, "joe/1", "session_ended")]


async def test_the_next_process_reports_which_letter_was_replayed(
    shared_valkey: ValkeyServer,
) -> None:
    async with store_process(shared_valkey) as at:
        at.store.save(session("joe/1"))
        at.store.dead_letter([letter(9, of=2)], None)
        Journalling(at)
        takes = [Take(letter(9, of=2), "joe/1", True)]
        call, _ = await at.store.journal.replay_take(str(BASE), takes)
        assert await at.store.run(call) == [b"taken"]
    async with store_process(shared_valkey) as at:
        await report_left_notes(at)
    [_, found] = journalled(shared_valkey)
    assert (found.kind, found.receiver, found.kept) == ("replayed", "joe/1", 1)
    assert (found.letter, found.generation) == (BASE + 9, 1)


async def test_unreadable_notes_are_reported_as_dropped(shared_valkey: ValkeyServer) -> None:
    async with store_process(shared_valkey) as at:
        journalling = Journalling(at)
        journalling.writer.report_left_notes(
            {1: b"", 2: b"[99,[],[]]", 3: b"[1,[],[[1]]]", 4: b"[1,2]"}
        )
        journalling.writer.flush(0.0)
        await at.answered()
    assert [(event.kind, event.number) for event in journalled(shared_valkey)] == [("dropped", 4)]
