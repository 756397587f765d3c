"""A server that runs, and how it ends."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass

from holdfast.bayeux.server import Bayeux
from holdfast.compose.storage import Storage
from holdfast.web.heads import Heads
from holdfast.web.listener import Listener
from holdfast.web.websocket import WebSocketFrontEnd

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunningServer:
    """The parts that matter to the end of a server."""

    url: str
    bayeux: Bayeux
    storage: Storage
    clock: Callable[[], float]
    heads: Heads
    websockets: WebSocketFrontEnd
    listener: Listener

    async def stop(self, timeout_s: float) -> None:
        """Stop in order: clients get what is pending, and are told to return later."""
        self.listener.stop_accepting()
        self.heads.end_connections()
        # Pending data leaves first; then connections are closed without waiting.
        await _within(timeout_s / 2, self._let_go())
        await _within(timeout_s / 2, self._close())

    async def _let_go(self) -> None:
        """Answer all held connects, and wait until clients have everything."""
        if self.storage.is_fenced:
            # Another server speaks for its sessions.
            return
        answered = asyncio.Event()
        self.bayeux.stop(self.clock(), answered.set)
        await answered.wait()
        await asyncio.gather(self.websockets.close_drained(), self.listener.drain())

    async def _close(self) -> None:
        await self.websockets.close_all()
        await self.listener.close()


async def _within(seconds: float, closing: Coroutine[None, None, None]) -> None:
    """Wait this long at most: some clients never answer, others never read."""
    try:
        async with asyncio.timeout(seconds):
            await closing
    except TimeoutError:
        log.info("stopped before some clients had read everything")
