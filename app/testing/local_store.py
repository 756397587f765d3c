"""The store of a local server, which a test takes away and gives back."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from holdfast.compose.storage import Storage
from holdfast.store.links.resp import RespConnection
from holdfast.web.tasks import reached

_NAME = "holdfast-testing"
_WHY = "a test has taken it away"
# How long it may take to come back. The server looks for it once a second at least.
_BACK_S = 30.0


class LocalStore:
    """The store of a local server: a Valkey that runs in the directory of this server."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._is_silenced = False

    @property
    def is_available(self) -> bool:
        """Whether durable messages are accepted now."""
        return self._storage.store.is_available

    def pause(self) -> None:
        """Take the store away until `resume`: the server loses its connection to it."""
        self._storage.link.suspend(_WHY)

    async def resume(self) -> None:
        """Give the store back, or end its silence; return when the server uses it again."""
        if self._is_silenced:
            self._is_silenced = False
            await self._tell("CLIENT", "UNPAUSE")
        self._storage.link.resume()
        if not await reached(_BACK_S, lambda: self.is_available):
            raise TimeoutError(f"the store was not used again within {_BACK_S:g} s")
        await self._storage.store.answered()

    @asynccontextmanager
    async def away(self) -> AsyncIterator[None]:
        """Take the store away for the block."""
        self.pause()
        try:
            yield
        finally:
            await self.resume()

    async def silence(self, seconds: float) -> None:
        """Let the store answer no write for this long; after five seconds it counts as away."""
        self._is_silenced = True
        await self._tell("CLIENT", "PAUSE", str(round(seconds * 1000)), "WRITE")

    async def _tell(self, *words: str) -> None:
        wire = await RespConnection.connect(self._storage.primary.address, _NAME, [])
        try:
            await wire.ask([words])
        finally:
            wire.abort("not needed any more")

    async def answered(self) -> None:
        """Wait until the store has answered everything so far, if it is there."""
        # First the turn ends, and sends what it has for the store.
        await asyncio.sleep(0)
        if self.is_available:
            await self._storage.store.answered()
