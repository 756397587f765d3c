"""Keeps a link from this process, as a door, to each other shard."""

import asyncio
import logging
from contextlib import suppress
from pathlib import Path
from typing import Final

from holdfast.web.forwarding.far_shard import FarShard
from holdfast.web.forwarding.hello import Hello, greet
from holdfast.web.forwarding.shard_link import Link

log = logging.getLogger(__name__)

# How long to wait before the next attempt: at first, and at most.
_FIRST_S: Final = 0.05
_LONGEST_S: Final = 1.0
# How long the peer may take to accept the link and to say who it is.
_GREETING_S: Final = 5.0


class LinkKeeper:
    """Connects to another shard, and again whenever the link is lost, until cancelled."""

    # Whether the shard is on this host, as far as is known.
    is_near = True

    def __init__(self, shard: int, path: Path, hello: Hello, far: FarShard) -> None:
        self._shard, self._path, self._hello, self._far = shard, path, hello, far
        # What was logged last, which is not repeated with every attempt.
        self._logged: str | None = None

    async def run(self) -> None:
        wait_s = _FIRST_S
        while True:
            with suppress(OSError, TimeoutError):
                if await self._hold():
                    wait_s = _FIRST_S
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, _LONGEST_S)

    async def _hold(self) -> bool:
        """Make a link; return when it has ended. Returns whether it could be used."""
        link = self._far.link()
        greeted: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def settle(fault: str | None) -> None:
            greeted.set_result(fault is None)
            if fault is None:
                self._far.open(link)

        greet(link, self._greeting(), self._fault_of, settle)
        try:
            async with asyncio.timeout(_GREETING_S):
                await self._connect(link)
                await asyncio.wait((greeted, link.ended), return_when=asyncio.FIRST_COMPLETED)
            if not greeted.done():
                return False
            await self._last(link)
            return greeted.result()
        finally:
            link.close()

    def _greeting(self) -> Hello:
        """Return what to say on a new link."""
        return self._hello

    async def _last(self, link: Link) -> None:
        """Return when the link has ended."""
        await asyncio.shield(link.ended)

    async def _connect(self, link: Link) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.create_unix_connection(link.as_protocol, str(self._path))
        except BaseException:
            link.give_up()
            raise

    def _fault_of(self, peer: Hello) -> str | None:
        fault = self._refusal_of(peer)
        if fault != self._logged:
            self._logged = fault
            if fault is not None:
                log.error("the link to shard %d is refused: %s", self._shard, fault)
        return fault

    def _refusal_of(self, peer: Hello) -> str | None:
        """Return why this peer is not the shard that was asked for, or None."""
        fault = self._hello.fault_of(peer)
        if fault is None and peer.shard != self._shard:
            fault = f"it says that it is shard {peer.shard}"
        return fault
