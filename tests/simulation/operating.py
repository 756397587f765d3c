"""An operator who replays dead letters, drops some, and holds receivers back for a while."""

import asyncio
import random
from contextlib import suppress

from tests.simulation.actors import Plan
from tests.simulation.console import Console, Refused, Unknown, is_whole
from tests.simulation.judges.operations import CHANNEL, Found, Operations
from tests.simulation.refusing import DEAD
from tests.simulation.session import Session
from tests.simulation.talker import Denied, Lost, Message
from tests.simulation.workers import Trade

TRADE = Trade(
    patterns=(CHANNEL,),
    verdicts={None: 0.6, **dict.fromkeys(DEAD, 0.1)},
    delays_ms=(),
    options=({},),
    turns=False,
)
_PAUSE_S = 1.0
_LIMIT = 20
# How many letters it treats at once at most, and how often it drops them.
_MOST, _DROPS = 4, 0.3
# How it replays them.
_CANARIES, _RATES = (0, 1, 10), (5, 1_000)
# A token that nobody has, how often somebody tries it, and what is due: one address may try ten at
# once, and then one every five seconds.
_UNKNOWN, _TRIES = "x" * 40, 0.1
_DENIED, _TOO_OFTEN = 401, 429


class Operator:
    """Administers the deployment."""

    def __init__(self, plan: Plan, truth: Operations, console: Console) -> None:
        self._plan = plan
        self._truth = truth
        self._console = console
        self._stranger = Session(plan.manners)

    async def run(self) -> None:
        """Administer until the plan is over, and then let everybody work, for ever."""
        while True:
            try:
                await (self._end() if self._plan.is_over else self._act())
            except Lost:
                # It asks at the next door.
                pass
            except Refused:
                self._console.hang_up()
            await asyncio.sleep(2 * _PAUSE_S * random.random())

    async def _act(self) -> None:
        act = random.choice((self._treat_letters, self._treat_letters, self._hold, self._release))
        await act()
        await self._look_at_replays()
        if random.random() < _TRIES:
            await self._try_unknown_token()

    async def _try_unknown_token(self) -> None:
        """Be a stranger, at both doors: nothing is done, and nothing is told."""
        with suppress(Denied):
            await self._stranger.begin(due="handshake_denied", authentication={"token": _UNKNOWN})
        await self._console.ask_with(_UNKNOWN, "GET", "/dead-letters", due=(_DENIED, _TOO_OFTEN))

    async def _end(self) -> None:
        for doer in self._truth.doers:
            await self._let_work(doer)
        await self._look_at_replays()

    # Letters

    async def _treat_letters(self) -> None:
        query = f"?channel={CHANNEL}&state=new&limit={_LIMIT}"
        page = await self._console.ask("GET", f"/dead-letters{query}")
        letters = [
            Found(each["id"], each["subject"], each["message"], each["generation"])
            for each in page["items"]
        ]
        if not letters:
            return
        some = random.sample(letters, random.randint(1, min(len(letters), _MOST)))
        await (self._drop(some) if random.random() < _DROPS else self._replay(some))

    async def _drop(self, letters: list[Found]) -> None:
        drop = self._truth.drops(letters)
        answer = await self._console.ask("POST", "/dead-letters/purge", _about(letters))
        self._truth.dropped(drop, answer["purged"], is_whole=is_whole(answer))

    async def _replay(self, letters: list[Found]) -> None:
        replay = self._truth.replays(letters)
        options = {"canary": random.choice(_CANARIES), "rate": random.choice(_RATES), "stop_at": 1}
        answer = await self._console.ask(
            "POST", "/replays", {**_about(letters), "options": options}
        )
        self._truth.begun(replay, answer["id"], is_whole=is_whole(answer))

    async def _look_at_replays(self) -> None:
        for replay in self._truth.under_way:
            try:
                answer = await self._console.ask("GET", f"/replays/{replay.id}")
            except Unknown:
                self._truth.gone(replay)
                continue
            if answer["over"] and is_whole(answer):
                self._truth.over(replay, answer)

    # Holds

    async def _hold(self) -> None:
        if not (doers := self._truth.doers):
            return
        doer = random.choice(doers)
        self._truth.holds(doer)
        await self._change_hold(doer, is_active=False)
        self._truth.held(doer)

    async def _release(self) -> None:
        if held := self._truth.held_back:
            await self._let_work(random.choice(held))

    async def _let_work(self, doer: str) -> None:
        self._truth.releases(doer)
        await self._change_hold(doer, is_active=True)
        self._truth.let_go(doer)

    async def _change_hold(self, doer: str, *, is_active: bool) -> None:
        """Hold a receiver back or let it work, by one of two ways."""
        if random.random() < 0.5:
            command = f"client/{doer}/1/?dispatcherActive={str(is_active).lower()}"
            await self._console.ask("POST", "/commands", {"command": command})
        elif is_active:
            await self._console.ask("DELETE", f"/sessions/{doer}/1/hold")
        else:
            await self._console.ask("PUT", f"/sessions/{doer}/1/hold", {"reason": "to see"})


def _about(letters: list[Found]) -> Message:
    return {"filter": {"ids": [each.id for each in letters]}, "dry_run": False}
