"""What shards still have for each other: it must be taken before a deployment is divided."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final, NamedTuple

from orjson import loads

from holdfast.bayeux.far_work.work_calls import TOLD as TOLD_OF_WORK
from holdfast.bayeux.far_work.work_calls import is_outcome
from holdfast.bayeux.services.far_topics import TOLD as TOLD_OF_TOPICS
from holdfast.cluster.frames import CALL, DURABLE, MESSAGE, Frame, LogEntry, read
from holdfast.cluster.places import go_on, incarnations_of, place_of
from holdfast.offline.shard_side import Side
from holdfast.store.format.log_scripts import FOR_ALL
from holdfast.units import counted

_FRAMES: Final = 16

# An id in a stream: the numbers of an incarnation and of a call.
_Id = tuple[int, int]


class Untaken(NamedTuple):
    """What one shard has not taken yet: stored messages and calls."""

    # None for calls in the inbox.
    sender: int | None
    shard: int
    entries: int

    def __str__(self) -> str:
        if self.sender is None:
            return f"shard {self.shard} has not done {counted(self.entries, 'letter')} of others"
        what = counted(self.entries, "entry", "entries")
        return f"shard {self.shard} has not taken {what} of shard {self.sender}"


async def untaken_in(sides: Sequence[Side]) -> list[Untaken]:
    """Return what is in the logs and inboxes of these shards for each other."""
    calls = [await side.store.ask("HLEN", side.keys.inbox) for side in sides]
    found = [
        Untaken(None, side.shard, count) for side, count in zip(sides, calls, strict=True) if count
    ]
    for sender in sides:
        places = {
            reader.shard: await _place(reader, sender) for reader in sides if reader is not sender
        }
        counts = dict.fromkeys(places, 0)
        async for id, parts in _frames(sender):
            for shard, place in places.items():
                if id > place:
                    counts[shard] += _entries_for(shard, parts)
        found += [Untaken(sender.shard, shard, count) for shard, count in counts.items() if count]
    return found


async def _place(reader: Side, sender: Side) -> _Id:
    """Return the id behind which the reader goes on in the log of the sender."""
    number = sender.shard
    place, passed = await reader.store.ask(
        "HMGET", reader.keys.meta, f"place {number}", f"passed {number}"
    )
    listed = await sender.store.ask("HGET", sender.keys.meta, "openings")
    behind = go_on(
        place_of((place or b"").decode()),
        incarnations_of((passed or b"").decode()),
        incarnations_of((listed or b"").decode()),
    )
    return _id_of(behind)


async def _frames(side: Side) -> AsyncIterator[tuple[_Id, Mapping[bytes, bytes]]]:
    after = "-"
    while True:
        found = await side.store.ask("XRANGE", side.keys.log, after, "+", "COUNT", _FRAMES)
        for id, words in found:
            yield _id_of(id.decode()), dict(zip(words[::2], words[1::2], strict=True))
            after = f"({id.decode()}"
        if len(found) < _FRAMES:
            return


def _id_of(text: str) -> _Id:
    fence, _, n = text.partition("-")
    return int(fence), int(n)


def _entries_for(shard: int, parts: Mapping[bytes, bytes]) -> int:
    """Count what a shard has to take: its absence loses passing messages and answers only."""
    names = (FOR_ALL.encode(), str(shard).encode())
    return sum(_entries(read(parts[name])) for name in names if name in parts)


def _entries(frame: Frame) -> int:
    return sum(map(must_be_taken, frame.all_entries()))


def must_be_taken(entry: LogEntry) -> bool:
    """Return whether something would be lost with an entry that is not taken."""
    if entry.kind == MESSAGE:
        return bool(entry.flags & DURABLE)
    if entry.kind != CALL or entry.channel == TOLD_OF_TOPICS:
        return False
    return entry.channel != TOLD_OF_WORK or any(map(is_outcome, loads(entry.data)["rows"]))
