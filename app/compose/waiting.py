"""What a standby does as long as another server has the store."""

import asyncio
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from typing import TypeVar

from holdfast.compose.cannot_start import CannotStart
from holdfast.compose.listen_addresses import ListenAddresses
from holdfast.compose.listening import ListeningSockets, listen, listen_for_commands
from holdfast.compose.placement import Placement
from holdfast.compose.succession import Succession
from holdfast.settings import Settings
from holdfast.web.tasks import cancel

T = TypeVar("T")

_REASON = "standby: another server has the store"


class Dismissed(Exception):
    """A standby was told to end while it waited."""


def may_wait(settings: Settings, succession: Succession) -> bool:
    """Return whether another server may have the store. Raises `CannotStart`."""
    if settings.standby and settings.redis is None:
        raise CannotStart("standby needs redis: no other server can have a server's own store")
    return settings.standby and not succession.is_successor


class Waiting:
    """Answers at the addresses of the server, and hears when it is to end.

    The supervisor keeps the sockets from here on. Of several workers, the first one answers.
    """

    def __init__(
        self,
        settings: Settings,
        addresses: ListenAddresses,
        placement: Placement,
        succession: Succession,
    ) -> None:
        self._settings = settings
        self._addresses = addresses
        self._placement = placement
        self._succession = succession
        # The sockets of the server, once it has waited.
        self.sockets: ListeningSockets | None = None
        self._has_begun = asyncio.Event()
        self._doors = AsyncExitStack()

    async def until(self, opening: Coroutine[None, None, T]) -> T:
        """Return what opens the store. Raises `Dismissed`."""
        opened = asyncio.create_task(self._open(opening))
        told = asyncio.create_task(self._told_to_end())
        try:
            await asyncio.wait((opened, told), return_when=asyncio.FIRST_COMPLETED)
            if not opened.done():
                raise Dismissed
            return await opened
        finally:
            await cancel(told)
            await cancel(opened)
            await self._doors.aclose()

    async def _open(self, opening: Coroutine[None, None, T]) -> T:
        try:
            if self._succession.must_wait:
                await self.begin()
            return await opening
        finally:
            opening.close()

    async def begin(self) -> None:
        """Answer, and go on as soon as the supervisor wants it."""
        # Most servers never wait.
        from holdfast.web.http.origins import Origins
        from holdfast.web.standby import StandbyDoor

        if self._has_begun.is_set():
            return
        self._has_begun.set()
        placement, succession = self._placement, self._succession
        if not placement.is_alone:
            from holdfast.compose.several import import_for_several

            # The first of several was forked before the supervisor knew how many there are.
            import_for_several()
        if placement.number == 0:
            sockets = self.sockets = listen(self._addresses, succession)
            listen_for_commands(self._settings.data, succession)
            origins = Origins(self._settings.allow_origin)
            for address, theirs in (
                (self._addresses.main, sockets.main),
                (self._addresses.admin, sockets.admin),
            ):
                if address is not None:
                    door = StandbyDoor(address, origins, is_healthy=True, reason=_REASON)
                    self._doors.push_async_callback(door.close)
                    # The server needs them later.
                    await door.open([each.dup() for each in theirs])
        await succession.waiting(placement.count, str(placement.links))

    async def _told_to_end(self) -> None:
        await self._has_begun.wait()
        await self._succession.dismissed()
