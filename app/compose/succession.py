"""How this server gets its place from another one, and what it inherits."""

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.store.opening.asking_to_open import Claimed
    from holdfast.supervisor.control import Ends


class CannotLeave(Exception):
    """A server cannot be succeeded now, and goes on. The text says why."""


class CannotGoOn(Exception):
    """A server can neither leave nor go on, and ends. The text says why."""


class Succession:
    """The supervisor, as a starting server sees it; without one, nothing happens.

    It stores the descriptors that the last server kept, and each new one inherits them.

    Args:
        stopped: Set when the process is told to stop.
    """

    # Whether there is a supervisor.
    is_supervised = False
    # Whether a running server hands over to this one.
    is_successor = False
    # Whether this one is to wait until it is told to go on, even if no other server has the store.
    must_wait = False
    # Whether no other server of the supervisor leaves when this one does.
    leaves_alone = False
    # By which connections arrive from the running server; None without one.
    door: int | None = None
    # Why this host may have the shard of this process; None without a list of hosts.
    claimed: "Claimed | None" = None

    def __init__(self, stopped: asyncio.Event | None = None) -> None:
        # How the servers of each shard have ended since the last restart, as far as any did.
        self.ends: Mapping[int, Ends] = {}
        # The inherited descriptors by name. They stay open.
        self.descriptors: Mapping[str, int] = {}
        self._stopped = stopped or asyncio.Event()

    def keep(self, name: str, descriptor: int) -> None:
        """Store a copy of the descriptor under this name for later servers, once this one serves.

        What is inherited and not kept, no later server inherits.
        """

    def close_rest(self) -> None:
        """Close the inherited descriptors, all of which have been copied but the lock."""

    def listening(self, workers: int, links: str, shards: int = 0) -> None:
        """Have the servers of other shards started, which inherit what is kept now.

        Args:
            links: The directory of their links.
            shards: How many all hosts have together, if there are several: those that this one
                claims are started.
        """

    async def waiting(self, workers: int, links: str) -> None:
        """Report that another server has the store; wait until this one may try to open it.

        The servers of other shards are started, and wait, too.

        Args:
            links: The directory of their links.
        """

    async def dismissed(self) -> None:
        """Wait until this server, which waits, is to end."""
        await self._stopped.wait()

    def fenced(self) -> None:
        """Report that another server has the store of this shard, and with it the deployment."""

    def lost(self) -> bool:
        """Report the same; return whether this process, which serves, is soon told to part."""
        self.fenced()
        return False

    async def prepared(self) -> None:
        """Report that all that can fail has been tried; wait until the other server has left."""

    async def opened(self) -> None:
        """Report that this shard has opened its store; wait until all have."""

    async def settled(self) -> None:
        """Report that nothing begun here needs other shards; wait until none needs this one.

        Not longer than a second: one of them may be unable to settle.
        """
