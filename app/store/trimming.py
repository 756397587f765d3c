"""A journal is kept until all who read it have it, but not for ever and not without bounds."""

from typing import NamedTuple, cast

from app.store import scripts
from app.store.keeping import Store

# Whoever reads it anew finds at least so much of it.
_GRACE_MS = 3_600_000


class Trimmed(NamedTuple):
    """Frames that were cut off."""

    # All who read the journal have them.
    read: int
    # They were too old, or too much: somebody has not, or nobody reads it.
    unread: int
    # How many read it.
    readers: int


async def trim(store: Store, node: str, *, now_ms: int, age_ms: int, size: int) -> Trimmed:
    """Cut off what all have read, what is older than that, and the oldest of what is too much."""
    numbers = cast(
        "list[int]",
        await store.run(
            lambda epoch: scripts.trim(
                store.keys,
                epoch,
                node,
                read_ms=now_ms - _GRACE_MS,
                oldest_ms=now_ms - age_ms,
                size=size,
            )
        ),
    )
    return Trimmed(*numbers)
