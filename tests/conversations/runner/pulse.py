"""Notices when the machine stalls: stories with short times prove nothing meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic

from tests.conversations.runner.onlooker import onlooker_of

INTERVAL_S = 0.05
# Smaller delays of an answer do not count.
NOTICED_S = 0.03
# So long after a pause, its delay has been counted.
MEMORY_S = 0.3


class Pulse:
    """Asks a server again and again, and sums up the delays of its answers."""

    def __init__(self) -> None:
        self.lost_s = 0.0

    async def feel(self, server: str) -> None:
        async with onlooker_of(server) as onlooker:
            while True:
                asked = monotonic()
                await onlooker.ask()
                await asyncio.sleep(INTERVAL_S)
                late_s = monotonic() - asked - INTERVAL_S
                if late_s > NOTICED_S:
                    self.lost_s += late_s


@asynccontextmanager
async def pulse_of(server: str) -> AsyncIterator[Pulse]:
    pulse = Pulse()
    finger = asyncio.create_task(pulse.feel(server))
    try:
        yield pulse
    finally:
        finger.cancel()
        await asyncio.gather(finger, return_exceptions=True)
