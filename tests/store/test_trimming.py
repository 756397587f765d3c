"""Trimming: frames are kept until all readers have them, within limits of age and size."""

from holdfast.store.trimming import TrimmedFrames, trim
from tests.store.store_process import KEYS, StoreProcess

STREAM = KEYS.journal("test")
HOUR = 3_600_000
DAY = 24 * HOUR
NOW = 100 * DAY


def write(at: StoreProcess, *hours: int, size: int = 10) -> None:
    """Write frames of so many hours ago."""
    for ago in hours:
        at.server.ask("XADD", STREAM, f"{NOW - ago * HOUR}-5", "frame", "x" * size)


def hours_left(at: StoreProcess) -> list[int]:
    """How many hours ago the remaining frames were written."""
    entries = at.server.ask("XRANGE", STREAM, "-", "+")
    return [(NOW - int(id.split(b"-")[0])) // HOUR for id, _ in entries]


def read(at: StoreProcess, who: str, ago: int) -> None:
    at.server.ask("HSET", KEYS.journal_read("test"), who, f"{NOW - ago * HOUR}-5")


async def trimmed(at: StoreProcess, *, size: int = 1_000_000) -> TrimmedFrames:
    return await trim(at.store, "test", now_ms=NOW, age_ms=7 * DAY, size=size)


async def test_frames_without_a_reader_are_kept_until_they_are_too_old(at: StoreProcess) -> None:
    write(at, 170, 169, 168, 5, 0)
    assert await trimmed(at) == TrimmedFrames(read=0, unread=2, readers=0)
    assert hours_left(at) == [168, 5, 0]


async def test_trimming_notes_that_the_server_is_running(at: StoreProcess) -> None:
    await trimmed(at)
    assert at.server.ask("HGET", KEYS.meta, f"heard {STREAM}") == str(NOW).encode()


async def test_frames_that_all_readers_have_are_removed_after_an_hour(at: StoreProcess) -> None:
    write(at, 9, 8, 7, 6, 1, 0)
    read(at, "reports", 6)
    read(at, "archive", 8)
    assert await trimmed(at) == TrimmedFrames(read=2, unread=0, readers=2)
    assert hours_left(at) == [7, 6, 1, 0]
    read(at, "archive", 0)
    read(at, "reports", 0)
    assert await trimmed(at) == TrimmedFrames(read=2, unread=0, readers=2)
    assert hours_left(at) == [1, 0]


async def test_a_vanished_reader_does_not_keep_frames_beyond_their_age(at: StoreProcess) -> None:
    write(at, 170, 169, 3, 0)
    read(at, "vanished", 170)
    read(at, "present", 0)
    assert await trimmed(at) == TrimmedFrames(read=1, unread=1, readers=2)
    assert hours_left(at) == [3, 0]


async def test_a_journal_that_is_too_large_loses_its_oldest_frames(at: StoreProcess) -> None:
    write(at, *range(160, 60, -1), size=1000)
    read(at, "slow", 158)
    result = await trimmed(at, size=50_000)
    assert result.read == 3
    assert hours_left(at) == [*range(60 + len(hours_left(at)), 60, -1)]
    assert 30 <= len(hours_left(at)) <= 60
    assert result.unread == 97 - len(hours_left(at))


async def test_trimming_a_journal_that_does_not_exist_has_no_effect(at: StoreProcess) -> None:
    assert await trimmed(at) == TrimmedFrames(read=0, unread=0, readers=0)
    assert STREAM not in at.names()


async def test_an_unreadable_position_of_a_reader_removes_no_frames(at: StoreProcess) -> None:
    write(at, 9, 0)
    at.server.ask("HSET", KEYS.journal_read("test"), "who", "hello")
    assert await trimmed(at) == TrimmedFrames(read=0, unread=0, readers=1)
