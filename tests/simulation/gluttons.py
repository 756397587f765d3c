"""Clients that ask for more than a server takes: it says so with one error for each limit (S10)."""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from tests.simulation.actors import Plan
from tests.simulation.asking import MOST_OPEN
from tests.simulation.session import SUBSCRIBE, Session
from tests.simulation.talker import Denied, Lost, Message, Talker

# What servers are told: others stay below that.
LIMITS: dict[str, Any] = {
    "max_message_size": 8192,
    "max_subscriptions": 50,
    "max_depth": 32,
    "max_channel_length": 64,
    "max_channel_segments": 8,
    "max_values": 2_000,
    "max_delay": 3_600_000,
    "max_session_filters": 5,
    "max_names_per_browser": 3,
    "max_outstanding": MOST_OPEN + 2,
}
_CHANNEL = "/glutton"
_PAUSE_S, _LONG_PAUSE_S = 1.0, 8.0
# Where somebody asks who gets no answer, how soon again, and for how long it waits for one.
_UNANSWERED, _ASKS_S, _TIMEOUT_S = "/glutton/unanswered", 0.2, 60.0
# How much faster a clock may run.
_FAST = 1.1


def _nested(depth: int) -> Any:
    found: Any = 1
    for _ in range(depth):
        found = [found]
    return found


def _delivery(**options: Any) -> Message:
    return {"ext": {"delivery": options}}


# What ends its connection, too.
_REQUEST: Final = "request_too_large"
# What is too much, with the error that is due.
_TOO_MUCH: Sequence[tuple[str, Message]] = (
    ("message_too_large", {"channel": _CHANNEL, "data": "x" * LIMITS["max_message_size"]}),
    ("message_too_deep", {"channel": _CHANNEL, "data": _nested(LIMITS["max_depth"])}),
    (_REQUEST, {"channel": _CHANNEL, "data": [1] * LIMITS["max_values"]}),
    ("channel_invalid", {"channel": "/" + "x" * LIMITS["max_channel_length"], "data": 1}),
    (
        "channel_invalid",
        {"channel": _CHANNEL + "/x" * LIMITS["max_channel_segments"], "data": 1},
    ),
    (
        "delivery_invalid",
        {"channel": _CHANNEL, "data": 1, **_delivery(delay=LIMITS["max_delay"] + 1)},
    ),
    (
        "subscriptions_exceeded",
        {
            "channel": SUBSCRIBE,
            "subscription": [f"{_CHANNEL}/{n}" for n in range(LIMITS["max_subscriptions"] + 1)],
        },
    ),
    (
        "subscriptions_exceeded",
        {
            "channel": SUBSCRIBE,
            "subscription": [f"{_CHANNEL}/{n}" for n in range(LIMITS["max_session_filters"] + 1)],
            **_delivery(filter="data.x = 1"),
        },
    ),
)


class Glutton:
    """Asks for too much, again and again, and goes on with its session."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._session = Session(plan.manners)

    async def run(self) -> None:
        """Ask for too much until the plan is over."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._ask_all())
            group.create_task(self._session.listen(_PAUSE_S))

    async def _ask_all(self) -> None:
        while not self._plan.is_over:
            if self._session.client_id:
                await self._ask()
            await asyncio.sleep(_PAUSE_S * random.random())

    async def _ask(self) -> None:
        due, message = random.choice(_TOO_MUCH)
        if due == _REQUEST and self._session.has_one_connection:
            # The connect would have no answer.
            return
        try:
            await self._session.send(**message, due=due)
        except (Lost, Denied):
            # It goes on as before.
            return


class Collector:
    """One browser that wants one more name than it may have; those that it has, it keeps.

    Args:
        may_have_lost: Whether a failover may have lost what was written between these times.
    """

    def __init__(self, plan: Plan, may_have_lost: Callable[[float, float], bool]) -> None:
        self._plan = plan
        self._may_have_lost = may_have_lost
        # A socket has a browser of its own.
        manners = replace(plan.manners, sockets=0.0)
        browser = Talker(manners.doors)
        count = LIMITS["max_names_per_browser"]
        names = [f"collector/{n + 1}" for n in range(count + 1)]
        self._sessions = [Session(manners, name, talker=browser.beside()) for name in names]

    async def run(self) -> None:
        """Ask for all names again and again, until the plan is over."""
        while not self._plan.is_over:
            try:
                await self._ask_for_all()
            except (Lost, Denied):
                pass
            await asyncio.sleep(_LONG_PAUSE_S * random.random())

    async def _ask_for_all(self) -> None:
        *own, another = self._sessions
        now, has_all = self._plan.manners.witness.now, True
        began_at = now()
        for session in own:
            reply = await session.begin()
            has_all &= bool(reply["ext"]["delivery"].get("resumed"))
        if has_all and not self._may_have_lost(began_at, now()):
            await another.begin(due="sessions_exceeded")


class Nag:
    """Asks somebody who never answers, until it has as many requests as it may have, and one more.

    Args:
        may_have_lost: Whether a failover may have lost what was written between these times.
    """

    def __init__(self, plan: Plan, may_have_lost: Callable[[float, float], bool]) -> None:
        self._plan = plan
        self._may_have_lost = may_have_lost
        self._listener = Session(plan.manners, "nagged/1")
        self._lives = 0
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Be another client, which has asked for nothing yet."""
        self._lives += 1
        self._session = Session(self._plan.manners, f"nag{self._lives}/1", take=self._take)
        self._ret = ""
        # When each request was asked that is outstanding, by where its answer would go.
        self._open: dict[str, float] = {}
        self._serial = 0

    async def run(self) -> None:
        """Ask until the plan is over, and listen for ever."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._listen())
            group.create_task(self._hear())
            group.create_task(self._ask_all())

    async def _listen(self) -> None:
        is_subscribed = False
        while True:
            try:
                if not self._listener.client_id:
                    await self._listener.begin()
                if not is_subscribed:
                    await self._listener.send(SUBSCRIBE, subscription=_UNANSWERED)
                    is_subscribed = True
                await self._listener.connect()
            except (Lost, Denied):
                await asyncio.sleep(_PAUSE_S * random.random())

    async def _hear(self) -> None:
        while True:
            session = self._session
            try:
                if not session.client_id:
                    reply = await session.begin(request=self._ret or True)
                    self._ret = reply["ext"]["ret"]
                await session.connect()
            except (Lost, Denied):
                await asyncio.sleep(_PAUSE_S * random.random())

    async def _ask_all(self) -> None:
        while not self._plan.is_over:
            if self._ret and self._session.client_id and not await self._ask():
                # Whether the server has that one is not known.
                self._begin_anew()
            is_full = len(self._open) >= LIMITS["max_outstanding"]
            await asyncio.sleep((_PAUSE_S if is_full else _ASKS_S) * random.random())

    async def _ask(self) -> bool:
        """Ask once. Returns whether it is known what came of it."""
        now = self._plan.manners.witness.now()
        self._serial += 1
        reply_to = f"{self._ret}/{5_000_000 + self._serial}"
        ext = {"replyTo": reply_to, "timeout": int(1000 * _TIMEOUT_S), "request": "first"}
        is_full = len(self._open) >= LIMITS["max_outstanding"]
        oldest = min(self._open.values(), default=now)
        if is_full and (self._may_have_lost(oldest, now) or now > oldest + _TIMEOUT_S / _FAST):
            return False
        due = "requests_exceeded" if is_full else ""
        # Its end may come ahead of the answer.
        self._open[reply_to] = now
        try:
            await self._session.send(_UNANSWERED, data=1, ext=ext, due=due)
        except Lost:
            return False
        except Denied as denied:
            self._open.pop(reply_to, None)
            return str(denied).endswith(":requests_exceeded") and is_full
        return True

    def _take(self, event: Message) -> None:
        self._open.pop(event["channel"], None)
