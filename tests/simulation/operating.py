"""An operator who replays letters, drops some, holds receivers back, and ends their sessions."""

import asyncio
import random
from contextlib import suppress
from dataclasses import replace

from tests.simulation.actors import Plan
from tests.simulation.console import Console, Refused, Unknown, is_whole
from tests.simulation.judges.holds import ENDLESS
from tests.simulation.judges.operations import CHANNEL, STAND_IN, Found, Operations
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
# It gets nothing but what operators send there.
TRADE_OF_STAND_IN = replace(TRADE, patterns=("/unused",))
_PAUSE_S = 1.0
_LIMIT = 20
# How many letters it treats at once at most, and how often it drops them.
_MOST, _DROPS = 4, 0.3
# How often it sends them to somebody else, and one with other data.
_SENDS_ON, _EDITS = 0.3, 0.3
# How often it ends a session, and holds something back for some time, and for how long.
_ENDS, _LIMITED, _HOLDS_S = 0.08, 0.5, (1.0, 3.0, 8.0)
_OF_CHANNEL = f"?channel={CHANNEL}"
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
        self._holds = truth.holds
        # Whether what is held back is held for some time, and not until it is released.
        self._is_limited: dict[str, bool] = {}
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
        if random.random() < _ENDS:
            await self._end_session()
        acts = self._treat_letters, self._treat_letters, self._hold, self._release, self._look
        await random.choice(acts)()
        await self._look_at_replays()
        if random.random() < _TRIES:
            await self._try_unknown_token()

    async def _try_unknown_token(self) -> None:
        """Be a stranger, at both doors: nothing is done, and nothing is told."""
        with suppress(Denied):
            await self._stranger.begin(due="handshake_denied", authentication={"token": _UNKNOWN})
        await self._console.ask_with(
            *(_UNKNOWN, "GET", "/dead-letters"), due=(_DENIED, _TOO_OFTEN), is_refused=True
        )

    async def _end(self) -> None:
        for what in (*self._truth.doers, CHANNEL):
            await self._look_at(what)
            if self._holds.is_over(what):
                await self._let_go(what)
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
        """Replay letters, perhaps to somebody else, and perhaps one with other data."""
        options: Message = {"canary": random.choice(_CANARIES), "rate": random.choice(_RATES)}
        options["stop_at"] = 1
        to = edited = ""
        others = self._truth.of_messages_not_sent_on(letters)
        if others and self._truth.has_stand_in and random.random() < _SENDS_ON:
            letters, to = others, STAND_IN
            options["to"] = f"{STAND_IN}/1"
        if random.random() < _EDITS:
            letters, edited = letters[:1], f"edited-{letters[0].id}"
            options["edit"] = {"data": {"key": edited}}
        replay = self._truth.replays(letters, to=to, edited=edited)
        body = {**_about(letters), "options": options}
        answer = await self._console.ask("POST", "/replays", body)
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

    # Sessions

    async def _end_session(self) -> None:
        if not (doers := self._truth.doers):
            return
        doer = random.choice(doers)
        self._truth.ends(doer)
        is_sure = False
        try:
            await self._console.ask("DELETE", f"/sessions/{doer}/1")
            is_sure = True
        finally:
            self._truth.ended(doer, is_sure=is_sure)

    # Holds

    async def _hold(self) -> None:
        """Hold back a receiver or the channel, until it is released, or for some time."""
        what = random.choice((*self._truth.doers, CHANNEL))
        limit, until = ENDLESS, None
        if self._is_limited.setdefault(what, random.random() < _LIMITED):
            asked_at, about = self._truth.now(), await self._console.ask("GET", "/about")
            duration_s = random.choice(_HOLDS_S)
            limit = self._holds.limit(asked_at, duration_s)
            until = about["now"] + round(1000 * duration_s)
        self._holds.asks(what, limit)
        answer = await self._change_hold(what, is_active=False, until=until)
        if "error" in answer:
            self._holds.refused(what, str(answer["error"]))
        elif is_whole(answer):
            self._holds.held(what, limit)

    async def _release(self) -> None:
        if held := self._holds.endless:
            await self._let_go(random.choice(held))

    async def _let_go(self, what: str) -> None:
        self._holds.releases(what)
        answer = await self._change_hold(what, is_active=True)
        if is_whole(answer):
            self._holds.let_go(what)

    async def _change_hold(
        self, what: str, *, is_active: bool, until: int | None = None
    ) -> Message:
        """Hold something back or release it, a receiver by one of two ways."""
        body = {"reason": "to see", "until": until}
        if what == CHANNEL and is_active:
            # It may have ended by itself.
            return await self._console.ask("DELETE", f"/held-channels{_OF_CHANNEL}", due=(404,))
        if what == CHANNEL:
            given = {"channel": CHANNEL, **body}
            return await self._console.ask("PUT", "/held-channels", given, due=(400,))
        if until is None and random.random() < 0.5:
            command = f"client/{what}/1/?dispatcherActive={str(is_active).lower()}"
            return await self._console.ask("POST", "/commands", {"command": command})
        if is_active:
            return await self._console.ask("DELETE", f"/sessions/{what}/1/hold")
        due = () if until is None else (400,)
        return await self._console.ask("PUT", f"/sessions/{what}/1/hold", body, due=due)

    async def _look(self) -> None:
        await self._look_at(random.choice((*self._truth.doers, CHANNEL)))

    async def _look_at(self, what: str) -> None:
        """See whether something is held back."""
        asked_at = self._truth.now()
        if what == CHANNEL:
            answer = await self._console.ask("GET", "/held-channels")
            held = [each["channel"] for each in answer["items"]]
            if is_whole(answer):
                self._holds.looked(what, asked_at, is_held=CHANNEL in held)
        else:
            answer = await self._console.ask("GET", f"/sessions/{what}/1")
            self._holds.looked(what, asked_at, is_held=answer["hold"] is not None)


def _about(letters: list[Found]) -> Message:
    return {"filter": {"ids": [each.id for each in letters]}, "dry_run": False}
