"""Work that sessions have: without the shard of its queue, it waits there again.

Only that shard gives the work of a queue to others. What its sessions had is stored with them; what
sessions of other shards have is not, so it cannot become such.
"""

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.delivery.messages.marks import Mark
from holdfast.delivery.shared_queues.work_queues import key_of_queue
from holdfast.offline.division import Places
from holdfast.offline.shard_side import Side
from holdfast.store.format import records
from holdfast.store.format.records import UNREADABLE


class Left(NamedTuple):
    """A message of a work queue, and the sessions that are to be elsewhere than the queue."""

    queue: str
    sessions: Sequence[str]


def left_by(
    places: Places, source: int, id: int, body: bytes, receivers: Sequence[str]
) -> Left | None:
    """Return who leaves a message to others; None for one that is no work, or unreadable."""
    try:
        channel = records.channel_of_work(id, body)
    except UNREADABLE:
        return None
    if channel is None:
        return None
    queue = key_of_queue(channel)
    home = places.of_receiver(queue, source)
    sessions = [
        each
        for each in receivers
        if places.is_session(each) and places.of_receiver(each, source) != home
    ]
    return Left(queue, sessions) if sessions else None


async def mark_at_queue(source: Side, session: str, id: int) -> bytes:
    """Return the record of a session's entry as one that waits for others; empty if it is new."""
    keys = source.keys
    own, batch = await source.store.ask_all(
        ("HGET", keys.marks(session), id), ("HGET", keys.handed, session)
    )
    try:
        mark, generation = _progress(id, own, batch)
    except UNREADABLE:
        # It may have been handed over.
        mark, generation = Mark(id, seq=1, attempts=1), 0
    origin = records.pack_generation(generation)
    if not mark.attempts:
        return origin
    redelivered = mark.redelivered + mark.is_in_flight
    waits = Mark(id, attempts=mark.attempts, redelivered=redelivered, trail=mark.trail)
    return records.pack_mark(waits, {}) + origin


def _progress(id: int, own: bytes | None, batch: bytes | None) -> tuple[Mark, int]:
    """Return the mark of an entry, which is newer than the last batch, and its generation."""
    if own is not None:
        return records.unpack_entry(id, own)
    marks = records.unpack_batch(batch).marks() if batch is not None else ()
    return next((each for each in marks if each.id == id), Mark(id)), 0
