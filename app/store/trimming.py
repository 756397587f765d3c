"""Trims the journal: frames stay until every reader has them, within limits of age and size."""

from typing import NamedTuple, cast

from holdfast.store.format import scripts
from holdfast.store.store import Store

# A new reader finds at least this much.
_GRACE_MS = 3_600_000


class TrimmedFrames(NamedTuple):
    """How many frames were removed."""

    # Frames that every reader has.
    read: int
    # Too old or too many. Some reader had not read them, or there is none.
    unread: int
    # The number of readers.
    readers: int


async def trim(store: Store, node: str, *, now_ms: int, age_ms: int, size: int) -> TrimmedFrames:
    """Remove frames that all readers have, frames over age, and the oldest beyond the size."""
    reply = await store.run(
        scripts.trim(
            store.keys,
            node,
            read_ms=now_ms - _GRACE_MS,
            oldest_ms=now_ms - age_ms,
            size=size,
            now_ms=now_ms,
        )
    )
    return TrimmedFrames(*cast("list[int]", reply))
