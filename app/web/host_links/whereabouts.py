"""Which host has a shard."""

from typing import Protocol


class Whereabouts(Protocol):
    """What the store says about it."""

    async def host_of(self, shard: int, /) -> str | None:
        """Return the name of the host; None if no host has the shard, or the store is away."""
        ...
