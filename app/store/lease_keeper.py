"""Keeps the lease of this process alive, on a connection that nothing else delays."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from holdfast.store.connection import StoreUnavailable
from holdfast.store.keys import RedisKeys
from holdfast.store.lease import Lease
from holdfast.store.reader import Reader, evaluation
from holdfast.store.reply_errors import ScriptFailed
from holdfast.store.scripts import RAISE

log = logging.getLogger(__name__)

# How often the lease is raised: several raises may fail before a silence begins.
_EVERY_S = 0.5
# A failed raise is repeated sooner.
_PAUSE_S = 0.1
# An answer later than this would not help any more.
_LIMIT_S = 1.0
# How long a replica may take to confirm a raise.
_REPLICA_MS = 500
# The place of the replicas in the store's answer to ROLE.
_REPLICAS = 2
# Begins the error of a store that cannot write to its disk.
_CANNOT_WRITE = "MISCONF"
# These begin the error for a command that this user, or any user, may not run.
_NOT_ALLOWED = ("NOPERM", "unknown command")


class OpenStore(Protocol):
    """The store as far as this process has opened it."""

    is_open: bool
    epoch: str


class LeaseKeeper:
    """Raises the lease twice a second, and at once when a silence begins.

    If the store has replicas, one of them must confirm each raise: a primary that is cut off would
    confirm it even if a replica has taken its place, and another server has opened that one.

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
        self._has_replicas = False
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
            self._lease.raised(sent_at)
            return True
        if found is not None and epoch == self._right.epoch:
            self._on_refused(ScriptFailed("EPOCH", f"EPOCH {found or 'gone'}"))
        return False

    async def _ask(self, epoch: str) -> str | None:
        """Return the epoch in force, or None if no replica has confirmed it."""
        try:
            return await self._raise_in(epoch)
        except StoreUnavailable as error:
            if self._may_ask_for_replicas and any(each in str(error) for each in _NOT_ALLOWED):
                self._may_ask_for_replicas = False
                log.warning(
                    "the store does not let this user run ROLE or WAIT, so a primary that is cut "
                    "off from its replicas is not noticed: allow it with +role +wait (%s)",
                    error,
                )
                return await self._ask(epoch)
            if _CANNOT_WRITE not in str(error):
                raise
            # A store whose disk is full cannot be opened by any other server either.
            found = await self._reader.ask("HGET", self._keys.meta, "epoch")
            return _text(found)

    async def _raise_in(self, epoch: str) -> str | None:
        raising = evaluation(RAISE, [self._keys.meta], [epoch])
        if not self._may_ask_for_replicas:
            [found] = await self._reader.ask_all(raising)
            return _text(found)
        if not self._reader.is_connected:
            # Another server may answer, and one without replicas would wait for them.
            self._has_replicas = False
        commands = [raising, ("ROLE",)]
        if self._has_replicas:
            commands.append(("WAIT", 1, _REPLICA_MS))
        found, role, *confirmed = await self._reader.ask_all(*commands)
        had_replicas, self._has_replicas = self._has_replicas, bool(role[_REPLICAS])
        if self._has_replicas and not had_replicas:
            return await self._raise_in(epoch)
        is_confirmed = not self._has_replicas or confirmed[0] > 0
        return _text(found) if is_confirmed else None


def _text(reply: bytes | None) -> str:
    return (reply or b"").decode()
