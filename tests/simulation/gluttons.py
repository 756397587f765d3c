"""Clients that ask for more than a server takes: it says so with one error for each limit (S10)."""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from tests.simulation.actors import Plan
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
}
_CHANNEL = "/glutton"
_PAUSE_S, _LONG_PAUSE_S = 1.0, 8.0


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
            group.create_task(self._listen())

    async def _listen(self) -> None:
        while True:
            try:
                if not self._session.client_id:
                    await self._session.begin()
                await self._session.connect()
            except (Lost, Denied):
                await asyncio.sleep(_PAUSE_S * random.random())

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
