"""Places for questions: of a limited number, one address has at most half.

A client whose questions the application answers slowly then keeps no other from logging in.
"""

import asyncio
from typing import Final

AT_ONCE: Final = 64
_OF_ADDRESS: Final = AT_ONCE // 2


class _Line:
    """The questions about the clients of one address that have a place, or wait for one."""

    def __init__(self) -> None:
        self.places = asyncio.Semaphore(_OF_ADDRESS)
        self.size = 0


class Places:
    """Gives places in the order of questions. An address that has its half waits for these."""

    def __init__(self) -> None:
        self._all = asyncio.Semaphore(AT_ONCE)
        self._lines: dict[str, _Line] = {}

    def asked_by(self, network: str) -> int:
        """Return how many questions of an address have a place or wait for one."""
        line = self._lines.get(network)
        return 0 if line is None else line.size

    async def take(self, network: str) -> None:
        """Wait for a place. Callers without a network have no line."""
        if not network:
            await self._all.acquire()
            return
        line = self._lines.setdefault(network, _Line())
        line.size += 1
        try:
            await line.places.acquire()
            try:
                await self._all.acquire()
            except BaseException:
                line.places.release()
                raise
        except BaseException:
            self._leave(network, line)
            raise

    def give_back(self, network: str) -> None:
        """Let the next question have a place that was taken."""
        self._all.release()
        if network:
            line = self._lines[network]
            line.places.release()
            self._leave(network, line)

    def _leave(self, network: str, line: _Line) -> None:
        line.size -= 1
        if not line.size:
            del self._lines[network]
