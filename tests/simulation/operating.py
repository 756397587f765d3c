"""An operator who replays dead letters, drops some, and holds receivers back for a while."""

import asyncio
import random
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any

from tests.simulation.actors import Plan
from tests.simulation.judges.operations import CHANNEL, Found, Operations
from tests.simulation.refusing import DEAD
from tests.simulation.server import ADMIN_PORT
from tests.simulation.session import Session
from tests.simulation.talker import Denied, Lost, Message, Talker
from tests.simulation.workers import Trade

TRADE = Trade(
    patterns=(CHANNEL,),
    verdicts={None: 0.6, **dict.fromkeys(DEAD, 0.1)},
    delays_ms=(),
    options=({},),
    turns=False,
)
_API = "/admin/api/v1"
_PAUSE_S, _PATIENCE_S = 1.0, 12.0
_LIMIT = 20
# How many letters it treats at once at most, and how often it drops them.
_MOST, _DROPS = 4, 0.3
# How it replays them.
_CANARIES, _RATES = (0, 1, 10), (5, 1_000)
_GOOD, _NOT_FOUND = 300, 404
# A token that nobody has, how often somebody tries it, and what is due: one address may try ten at
# once, and then one every five seconds.
_UNKNOWN, _TRIES = "x" * 40, 0.1
_DENIED, _TOO_OFTEN = 401, 429


class Refused(Exception):
    """The server has not done what the operator wants."""


class Unknown(Refused):
    """The server does not know what the operator asks about."""


class Operator:
    """Administers one server after the other, as one of them answers.

    Args:
        token_at: Returns the token of operators at an address; the empty text without one.
    """

    def __init__(self, plan: Plan, truth: Operations, token_at: Callable[[str], str]) -> None:
        self._plan = plan
        self._truth = truth
        self._token_at = token_at
        # Where it asks; clients may come elsewhere later.
        self._doors: list[tuple[str, int]] = []
        self._talker = Talker(self._doors)
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
                self._talker.hang_up()
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
        await self._ask_with(_UNKNOWN, "GET", "/dead-letters", due=(_DENIED, _TOO_OFTEN))

    async def _end(self) -> None:
        for doer in self._truth.doers:
            await self._let_work(doer)
        await self._look_at_replays()

    # Letters

    async def _treat_letters(self) -> None:
        query = f"?channel={CHANNEL}&state=new&limit={_LIMIT}"
        page = await self._ask("GET", f"/dead-letters{query}")
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
        answer = await self._ask("POST", "/dead-letters/purge", _about(letters))
        self._truth.dropped(drop, answer["purged"], is_whole=_is_whole(answer))

    async def _replay(self, letters: list[Found]) -> None:
        replay = self._truth.replays(letters)
        options = {"canary": random.choice(_CANARIES), "rate": random.choice(_RATES), "stop_at": 1}
        answer = await self._ask("POST", "/replays", {**_about(letters), "options": options})
        self._truth.begun(replay, answer["id"], is_whole=_is_whole(answer))

    async def _look_at_replays(self) -> None:
        for replay in self._truth.under_way:
            try:
                answer = await self._ask("GET", f"/replays/{replay.id}")
            except Unknown:
                self._truth.gone(replay)
                continue
            if answer["over"] and _is_whole(answer):
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
            await self._ask("POST", "/commands", {"command": command})
        elif is_active:
            await self._ask("DELETE", f"/sessions/{doer}/1/hold")
        else:
            await self._ask("PUT", f"/sessions/{doer}/1/hold", {"reason": "to see"})

    async def _ask(self, method: str, path: str, body: Message | None = None) -> Message:
        """Ask for something; returns the answer. Raises `Lost` or `Refused`."""
        self._doors[:] = [(host, ADMIN_PORT) for host, _ in self._plan.manners.doors]
        host, _ = self._talker.door
        if not (token := self._token_at(host)):
            raise Refused("nobody has ever been there")
        return await self._ask_with(token, method, path, body)

    async def _ask_with(
        self,
        token: str,
        method: str,
        path: str,
        body: Message | None = None,
        *,
        due: Collection[int] = (),
    ) -> Message:
        """Ask with a token, also one to which these statuses are due."""
        host, _ = self._talker.door
        asked = self._truth.asks(host, f"{method} {path.partition('?')[0]}")
        try:
            status, answer = await self._talker.request(
                *(method, _API + path, token, body), limit_s=_PATIENCE_S
            )
        except Lost as lost:
            self._truth.failed(asked, f"lost: {lost}")
            raise
        if status in due and answer.keys() == {"error"}:
            return answer
        if status >= _GOOD or due:
            code = (answer.get("error") or {}).get("code", "")
            self._truth.failed(asked, f"{status}:{code}")
            raise (Unknown if status == _NOT_FOUND else Refused)(code)
        return answer


def _about(letters: list[Found]) -> Message:
    return {"filter": {"ids": [each.id for each in letters]}, "dry_run": False}


def _is_whole(answer: Mapping[str, Any]) -> bool:
    """Return whether all shards have answered."""
    return not answer.get("unanswered")
