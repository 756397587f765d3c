"""Clients that claim the same name one after the other, as two tabs with one account do."""

import asyncio
import random

from tests.simulation.actors import Plan
from tests.simulation.session import Session
from tests.simulation.talker import Denied, Lost

# How long a client that has lost the name does without it at most, and how long it waits otherwise.
_WITHOUT_S, _PAUSE_S = 6.0, 0.2


class Rival:
    """Takes the name from whoever has it, and keeps it until somebody else does."""

    def __init__(self, name: str, plan: Plan) -> None:
        self._session = Session(plan.manners, name)

    async def run(self) -> None:
        """Claim the name for ever."""
        while True:
            try:
                if not self._session.client_id:
                    await asyncio.sleep(_WITHOUT_S * random.random())
                    await self._session.begin()
                await self._session.connect()
            except (Lost, Denied):
                await asyncio.sleep(_PAUSE_S * random.random())
