"""While the store is away the journal waits, drops what is too much, and counts it."""

from holdfast.journal.frame import decode
from holdfast.journal.journal import Journal
from holdfast.journal.schema import Kind
from holdfast.journal.unfold import unfold
from tests.store.servers import ValkeyServer
from tests.store.store_process import BASE, KEYS, StoreProcess, store_process, until

NOW_US = BASE // 1000


def frames_and_events(server: ValkeyServer) -> tuple[list[int], list[tuple[str, int]]]:
    """The numbers of all frames; of each event its kind and its number."""
    entries = [fields for _, fields in server.ask("XRANGE", KEYS.journal("test"), "-", "+")]
    events = [event for fields in entries for event in unfold(decode(fields[b"frame"]))]
    numbers = [int(fields[b"seq"]) for fields in entries]
    return numbers, [(event.kind, event.number or 0) for event in events]


def happen(journal: Journal, first: int, last: int) -> None:
    """Write frames with one event each."""
    for n in range(first, last):
        journal.changed(Kind.SESSION, NOW_US, "opened", number=n)
        journal.flush(0.0)


async def test_frames_wait_while_the_store_is_away_and_dropped_events_are_reported() -> None:
    with ValkeyServer(appendonly="yes", appendfsync="always") as valkey:
        async with store_process(valkey) as at:
            journal = _journal(at, most_bytes=2000)
            happen(journal, 0, 3)
            await at.answered()
            valkey.kill()
            await until(lambda: not at.store.is_available)
            happen(journal, 3, 100)
            lost = journal.dropped
            assert 80 < lost < 97
            valkey.start()
            await until(lambda: at.store.is_available)
            happen(journal, 100, 103)
            await at.answered()
        numbers, events = frames_and_events(valkey)
        # Only the events are missing that the journal reports.
        assert numbers == [*range(1, len(numbers) + 1)]
        kept = [n for n in range(103) if not 100 - lost <= n < 100]
        assert [number for kind, number in events if kind == Kind.SESSION] == kept
        assert [number for kind, number in events if kind == Kind.DROPPED] == [lost]


async def test_a_lost_frame_leaves_a_gap_in_the_frame_numbers(
    shared_valkey: ValkeyServer,
) -> None:
    async with store_process(shared_valkey) as at:
        happen(_journal(at), 0, 5)
        await at.answered()
    ids = [id for id, _ in shared_valkey.ask("XRANGE", KEYS.journal("test"), "-", "+")]
    shared_valkey.ask("XDEL", KEYS.journal("test"), ids[2])
    assert frames_and_events(shared_valkey)[0] == [1, 2, 4, 5]
    # The newest number is known, too, in case the last frame is missing.
    assert shared_valkey.ask("HGET", KEYS.meta, KEYS.journal("test")) == b"5"


def _journal(at: StoreProcess, most_bytes: int = 1_000_000) -> Journal:
    wall = NOW_US * 1000
    return Journal("test", at.store.journal, now=0.0, now_ns=lambda: wall, most_bytes=most_bytes)
