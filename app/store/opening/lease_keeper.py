"""Keeps the lease of this process alive, on a connection that nothing else delays."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol

from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.scripts import RAISE
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.links.reader import Reader, evaluation
from holdfast.store.links.reply_errors import ScriptFailed, StoreRefused
from holdfast.store.links.resp import Word
from holdfast.store.opening.lease import Lease

log = logging.getLogger(__name__)

# How often the lease is raised: several raises may fail before a silence begins.
_EVERY_S = 0.5
# A failed raise is repeated sooner.
_PAUSE_S = 0.1
# An answer later than this would not help any more.
_LIMIT_S = 1.0
# How long a replica may take to confirm a raise.
_REPLICA_MS = 500
# How long Sentinels may take, all at once, to say which server is the primary.
_SENTINELS_S = 0.4
# The place of the replicas in the store's answer to ROLE, and the answer of a server without any.
_REPLICAS = 2
_ALONE = (b"master", 0, ())
# These begin the error for a command that this user, or any user, may not run.
_NOT_ALLOWED = ("NOPERM", "ERR unknown command")


class OpenStore(Protocol):
    """The store as far as this process has opened it."""

    is_open: bool
    epoch: str
    # Whether a raise was ever confirmed.
    was_confirmed: bool


class LeaseKeeper:
    """Raises the lease twice a second, and at once when a silence begins.

    A primary that is cut off, or was frozen, would confirm a raise even if a replica has taken its
    place, and another server has opened that one. So a raise counts only if a replica confirms it,
    or if most of the Sentinels do. A node of a cluster stops by itself if it is cut off. Behind
    neither, one of the replicas must confirm it, as long as there are any.

    Args:
        reader: A connection for this purpose only.
        right: Knows the epoch, while the store is open.
        on_refused: Called when another epoch is in force, or none. The error says which.
    """

    def __init__(
        self,
        reader: Reader,
        keys: RedisKeys,
        lease: Lease,
        right: OpenStore,
        *,
        on_refused: Callable[[ScriptFailed], None],
    ) -> None:
        self._reader = reader
        self._keys = keys
        self._lease = lease
        self._right = right
        self._on_refused = on_refused
        self._may_ask_for_replicas = True
        # As of the last raise.
        self._has_replicas = False
        # By which connection the one before was answered.
        self._connection: object = None
        self._is_wanted = asyncio.Event()
        lease.on_silent = self._is_wanted.set

    async def run(self) -> None:
        """Run until the task is cancelled."""
        while True:
            has_raised = await self._raise()
            if not has_raised or self._lease.is_catching_up:
                await asyncio.sleep(_PAUSE_S)
            elif not self._lease.is_silent:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_EVERY_S):
                        await self._is_wanted.wait()
            self._is_wanted.clear()

    async def _raise(self) -> bool:
        """Raise the lease. Returns whether the store has confirmed it."""
        if not self._right.is_open:
            return False
        sent_at, epoch = self._lease.clock(), self._right.epoch
        try:
            # Finding another primary takes longer, and must not be interrupted.
            async with asyncio.timeout(_LIMIT_S if self._reader.is_connected else None):
                found = await self._ask(epoch)
        except (StoreUnavailable, TimeoutError) as error:
            log.debug("the lease was not raised: %s", error)
            return False
        if found == epoch:
            self._right.was_confirmed = True
            self._lease.raised(sent_at)
            return True
        if found is not None and epoch == self._right.epoch:
            self._on_refused(ScriptFailed("EPOCH", f"EPOCH {found or 'gone'}"))
        return False

    async def _ask(self, epoch: str) -> str | None:
        """Return the epoch in force, or None if that may be another one by now."""
        found, is_confirmed = await self._raise_in(epoch)
        is_proof = is_confirmed or await self._is_primary()
        self._connection = self._reader.connection
        return found if is_proof else None

    async def _raise_in(self, epoch: str) -> tuple[str, bool]:
        """Return the epoch in force, and whether a replica has confirmed something new."""
        found, role = await self._ask_with_role(evaluation(RAISE, [self._keys.meta], [epoch]))
        is_new = True
        if isinstance(found, StoreRefused):
            # A server with a full disk, or with too few replicas, lets no other one open the store
            # either. Without a change, replicas would confirm once more what they had before.
            reading = "HGET", self._keys.meta, "epoch"
            sent = await self._reader.attempt(("PUBLISH", self._keys.meta, ""))
            found, role = await self._ask_with_role(reading)
            # In a cluster, replicas do not get it.
            is_new = not isinstance(sent[0], Exception) and not self._reader.is_in_cluster
        if isinstance(found, Exception):
            raise StoreUnavailable(f"the lease cannot be raised: {found}")
        self._has_replicas = bool(role[_REPLICAS])
        return _text(found), self._has_replicas and is_new and await self._is_confirmed()

    async def _ask_with_role(self, command: Sequence[Word]) -> tuple[Any, Any]:
        """Return the answer to a command, and the store's to ROLE."""
        if not self._may_ask_for_replicas:
            return *await self._reader.attempt(command), _ALONE
        found, role = await self._reader.attempt(command, ("ROLE",))
        return found, _ALONE if self._is_refused(role) else role

    async def _is_confirmed(self) -> bool:
        """Wait until a replica has what this connection has written."""
        [count] = await self._reader.attempt(("WAIT", 1, _REPLICA_MS))
        return not self._is_refused(count) and count > 0

    def _is_refused(self, answer: object) -> bool:
        """Return whether this user may not ask for replicas; then go on as without any."""
        if not isinstance(answer, Exception):
            return False
        if not str(answer).startswith(_NOT_ALLOWED):
            raise StoreUnavailable(f"the store does not say whether it has replicas: {answer}")
        self._may_ask_for_replicas = False
        log.warning(
            "the store does not let this user run ROLE or WAIT, so a primary that is cut off from "
            "its replicas is not noticed: allow it with +role +wait +publish allchannels (%s)",
            answer,
        )
        return True

    async def _is_primary(self) -> bool:
        """Return whether no replica can have taken the place of the server that has answered.

        No replica says so: there is none, or it does not answer.
        """
        if self._reader.has_sentinels:
            return await self._reader.is_named_by_sentinels(_SENTINELS_S)
        if self._reader.is_in_cluster:
            # A node that is cut off stops by itself before a replica takes its place. One that was
            # frozen meanwhile goes on for some milliseconds: longer than that is the pause before
            # the next raise on this connection.
            return self._reader.connection is self._connection
        return not self._has_replicas


def _text(reply: bytes | None) -> str:
    return (reply or b"").decode()
