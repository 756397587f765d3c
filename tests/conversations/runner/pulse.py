"""Whether the machine stood still: stories with short times prove nothing while it did."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic

import aiohttp

INTERVAL_S = 0.05
LATE_S = 0.15
# So long after a pause it has been counted.
MEMORY_S = 0.3


class Pulse:
    """Asks a server again and again, and counts the answers that were late."""

    def __init__(self) -> None:
        self.pauses = 0

    async def feel(self, server: str) -> None:
        async with aiohttp.ClientSession() as session:
            while True:
                asked = monotonic()
                async with session.get(f"{server}/healthz") as response:
                    await response.read()
                await asyncio.sleep(INTERVAL_S)
                if monotonic() - asked > INTERVAL_S + LATE_S:
                    self.pauses += 1


@asynccontextmanager
async def pulse_of(server: str) -> AsyncIterator[Pulse]:
    pulse = Pulse()
    finger = asyncio.create_task(pulse.feel(server))
    try:
        yield pulse
    finally:
        finger.cancel()
        await asyncio.gather(finger, return_exceptions=True)
