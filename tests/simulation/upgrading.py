"""An operator who finishes the upgrade of a store that an earlier release has left."""

import asyncio
import random

from tests.simulation.console import Console, Refused, is_whole
from tests.simulation.judges.layouts import Layouts
from tests.simulation.talker import Lost

# How often nobody finishes the upgrade, when somebody does, and how often one looks.
_NEVER, _FINISHES_S, _LOOKS_S = 0.2, (1.0, 30.0), (0.2, 3.0)


class Upgrader:
    """Finishes the upgrade under traffic, or only looks at it."""

    def __init__(self, console: Console, truth: Layouts) -> None:
        self._console = console
        self._truth = truth

    async def run(self) -> None:
        """Do what the command does, until it is done, and then look for ever."""
        self._truth.is_wanted = random.random() >= _NEVER
        finishes_at = asyncio.get_running_loop().time() + random.uniform(*_FINISHES_S)
        while True:
            try:
                answer = await self._console.ask("GET", "/upgrade")
                self._truth.told(answer, is_whole=is_whole(answer))
                is_due = asyncio.get_running_loop().time() > finishes_at
                if is_due and self._truth.is_under_way:
                    await self._finish()
            except Lost:
                # It asks at the next door.
                pass
            except Refused:
                self._console.hang_up()
            await asyncio.sleep(random.uniform(*_LOOKS_S))

    async def _finish(self) -> None:
        self._truth.asks()
        answer = await self._console.ask("POST", "/upgrade/finish", {})
        self._truth.told(answer, is_whole=is_whole(answer))
