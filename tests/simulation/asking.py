"""Clients that ask and answer, and how often each request ends."""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Any

from tests.simulation.actors import Plan
from tests.simulation.session import SUBSCRIBE, Session, id_of
from tests.simulation.talker import Denied, Lost, Message

CHANNEL = "/asked/a"
_PAUSE_S = 0.2
_TIMEOUT_MS = (1_000, 8_000)
# How fast clocks run at most.
_FAST = 1.1
# How far ahead of its clock a server may be that was killed: no id may come twice.
_AHEAD_S = 2.0
# How often a responder has no answer.
_IGNORES = 0.15
_MODES = ("first", "first", "all", "one")
# How many requests of one client are outstanding at most: servers take a few more.
MOST_OPEN = 20
# How much longer than its timeout a request may be outstanding, by the clock of its client.
_SLOW, _TOLD_S = 1.3, 3.0


@dataclass(slots=True)
class Asked:
    """A request as both sides know it."""

    mode: str
    begun_at: float
    # The least true time until its deadline.
    least_s: float
    # Whether the server has accepted it.
    is_accepted: bool = False
    # Whether the requester has a session of its own no more.
    is_over: bool = False
    ended_at: float = inf
    # What came, by id: who has replied, or how it ended.
    replies: dict[str, str] = field(default_factory=dict)
    ends: dict[str, str] = field(default_factory=dict)
    # Whose reply was accepted, whose may have been, and who was denied the right to reply.
    denied: set[str] = field(default_factory=set)
    accepted: set[str] = field(default_factory=set)
    unclear: set[str] = field(default_factory=set)


class Outcomes:
    """Judges whether each request has one outcome.

    Args:
        now: Returns the true time.
        is_excused: Whether a failover may have lost something between these times.
    """

    def __init__(
        self, now: Callable[[], float], is_excused: Callable[[float, float], bool]
    ) -> None:
        self._now = now
        self._is_excused = is_excused
        # Whether sessions may move to a server with another clock, for which requests end sooner.
        self.may_move = False
        self._asked: dict[str, Asked] = {}
        # Since when responders are there.
        self._responding: dict[str, float] = {}

    def asks(self, key: str, mode: str, timeout_ms: int) -> None:
        """Note that a request is about to be published."""
        self._asked[key] = Asked(mode, self._now(), timeout_ms / 1000 / _FAST)

    def accepted(self, key: str) -> None:
        """Note that the server has accepted a request."""
        self._asked[key].is_accepted = True

    def gone(self, requester: str) -> None:
        """Note that what is told to the requester's last session comes no more."""
        for key, asked in self._asked.items():
            if key.startswith(f"{requester} "):
                asked.is_over = True

    def ended(self, key: str, id: str, what: str, *, is_reply: bool) -> None:
        """Note what came for a request."""
        asked = self._asked[key]
        asked.ended_at = self._now()
        (asked.replies if is_reply else asked.ends)[id] = what

    def replied(self, key: str, responder: str, *, is_clear: bool) -> None:
        """Note that the server has accepted a reply, or may have."""
        asked = self._asked[key]
        (asked.accepted if is_clear else asked.unclear).add(responder)

    def refused(self, key: str, responder: str, error: str) -> None:
        """Note that a reply was refused for good."""
        asked = self._asked[key]
        # A reply ends most requests before the requester has it. A server that starts again does
        # not know what has ended.
        may_have_ended = asked.mode != "all" and bool(asked.accepted | asked.unclear)
        is_open = not asked.is_over and asked.ended_at == inf and not may_have_ended
        least_s = asked.least_s - _AHEAD_S
        if error.startswith("403") and is_open and self._now() < asked.begun_at + least_s:
            asked.denied.add(responder)

    def responds(self, responder: str) -> None:
        """Note that this client will answer what is asked from now on."""
        self._responding.setdefault(responder, self._now())

    def violations(self, *, trusts_clocks: bool) -> list[str]:
        """Return the requests with no outcome, with several, or with a wrong one.

        Args:
            trusts_clocks: Whether a request ends everywhere at the same time. Otherwise it may end
                before a responder hears of it.
        """

        def is_judged(asked: Asked) -> bool:
            # One responder is chosen among those whose clients are there, and whose store is.
            return trusts_clocks and asked.mode != "one"

        return [
            f"requests: {key} {what}"
            for key, asked in self._asked.items()
            if not self._is_excused(asked.begun_at, asked.ended_at)
            for what in (
                *_wrong(asked),
                *(self._unheard(asked) if is_judged(asked) else ()),
                *(_denied(asked) if trusts_clocks or not self.may_move else ()),
            )
        ]

    def _unheard(self, asked: Asked) -> Iterator[str]:
        if asked.ended_at > asked.begun_at + asked.least_s - _AHEAD_S:
            # A shard may have taken it for over.
            return
        if any(error.startswith("404") for error in asked.ends.values()):
            for responder, since in self._responding.items():
                if since < asked.begun_at:
                    yield f"has no responders, although {responder} is one"


def _wrong(asked: Asked) -> Iterator[str]:
    replies, ends = asked.replies, asked.ends
    told = f"{[*replies.values(), *ends.values()]}"
    if asked.mode != "all" and len(replies) + len(ends) > 1:
        yield f"has several outcomes: {told}"
    if asked.mode != "all" and len(asked.accepted) > 1:
        yield f"has several accepted replies: {sorted(asked.accepted)}"
    if len(ends) > 1:
        yield f"ends several times: {told}"
    if len({*replies.values()}) < len(replies):
        yield f"has a reply twice: {told}"
    if unknown := {*replies.values()} - asked.accepted - asked.unclear:
        yield f"has replies that were refused: {sorted(unknown)}"
    if asked.is_accepted and not asked.is_over:
        yield from _lacking(asked)


def _denied(asked: Asked) -> Iterator[str]:
    if asked.denied:
        yield f"was handed to {sorted(asked.denied)}, who must not reply"


def _lacking(asked: Asked) -> Iterator[str]:
    """Say what the requester of an accepted request does not get."""
    if not asked.ends and (asked.mode == "all" or not asked.replies):
        yield "has no outcome"
    elif lacking := asked.accepted - {*asked.replies.values()}:
        yield f"lacks the accepted replies of {sorted(lacking)}"


class Requester:
    """Asks, and collects what comes of it; a named session, which keeps its reply channel."""

    def __init__(self, name: str, plan: Plan, truth: Outcomes) -> None:
        self._name = name
        self._plan = plan
        self._truth = truth
        self._session = Session(plan.manners, f"{name}/1", take=self._take)
        self._ret: Any = True
        self._serial = 0
        self._keys: dict[str, str] = {}
        # By the keys of requests that may be outstanding: until when.
        self._open: dict[str, float] = {}

    async def run(self) -> None:
        """Ask until the plan is over, and listen for ever."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._ask_all())
            group.create_task(self._session.listen(_PAUSE_S, self._begin))

    async def _begin(self) -> None:
        reply = await self._session.begin(request=self._ret)
        ext = reply["ext"]
        if not ext["delivery"].get("resumed"):
            self._truth.gone(self._name)
        elif ext["ret"] != self._ret and self._ret is not True:
            raise AssertionError(f"{self._name} has another reply channel")
        self._ret = ext["ret"]

    async def _ask_all(self) -> None:
        while not self._plan.is_over:
            now = asyncio.get_running_loop().time()
            self._open = {key: until for key, until in self._open.items() if until > now}
            if self._session.client_id and len(self._open) < MOST_OPEN:
                await self._ask()
            await asyncio.sleep(self._plan.pause_s * 2 * random.random())

    async def _ask(self) -> None:
        self._serial += 1
        key, mode = f"{self._name} {self._serial}", random.choice(_MODES)
        reply_to = f"{self._ret}/4{self._serial:06}"
        self._keys[reply_to] = key
        timeout_ms = random.randint(*_TIMEOUT_MS)
        self._truth.asks(key, mode, timeout_ms)
        now = asyncio.get_running_loop().time()
        self._open[key] = now + timeout_ms / 1000 * _SLOW + _TOLD_S
        ext = {"replyTo": reply_to, "timeout": timeout_ms, "request": mode}
        try:
            await self._session.send(CHANNEL, data={"key": key}, ext=ext)
        except (Lost, Denied):
            return
        self._truth.accepted(key)

    def _take(self, event: Message) -> None:
        key = self._keys[event["channel"]]
        status = (event.get("ext") or {}).get("status")
        is_reply = status not in ("END", "ERROR")
        what = event["data"]["by"] if is_reply else str(event.get("error", status))
        self._truth.ended(key, id_of(event) or what, what, is_reply=is_reply)


class Responder:
    """Answers what it is asked, mostly, and repeats an answer until it knows what came of it."""

    def __init__(self, name: str, plan: Plan, truth: Outcomes) -> None:
        self._name = name
        self._plan = plan
        self._truth = truth
        self._session = Session(plan.manners, f"{name}/1", take=self._take)
        self._is_subscribed = False
        self._due: deque[tuple[str, str]] = deque()

    async def run(self) -> None:
        """Answer for ever."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._answer_all())
            group.create_task(self._listen())

    async def _listen(self) -> None:
        while True:
            try:
                if not self._session.client_id:
                    reply = await self._session.begin()
                    self._is_subscribed &= reply["ext"]["delivery"].get("resumed", False)
                if not self._is_subscribed:
                    await self._session.send(SUBSCRIBE, subscription=CHANNEL)
                    self._is_subscribed = True
                    self._truth.responds(self._name)
                await self._session.connect()
            except (Lost, Denied):
                await asyncio.sleep(_PAUSE_S * random.random())

    async def _answer_all(self) -> None:
        while True:
            while self._due and self._session.client_id:
                await self._answer(*self._due.popleft())
            await asyncio.sleep(_PAUSE_S * random.random())

    async def _answer(self, reply_to: str, key: str) -> None:
        """Answer once; what has no clear outcome is due again."""
        try:
            await self._session.send(reply_to, data={"by": self._name})
        except Lost:
            self._truth.replied(key, self._name, is_clear=False)
            self._due.append((reply_to, key))
        except Denied as denied:
            if denied.is_elsewhere or denied.ends_session:
                self._truth.replied(key, self._name, is_clear=False)
                self._due.append((reply_to, key))
            else:
                self._truth.refused(key, self._name, str(denied))
        else:
            self._truth.replied(key, self._name, is_clear=True)

    def _take(self, event: Message) -> None:
        if random.random() >= _IGNORES:
            self._due.append((event["ext"]["replyTo"], event["data"]["key"]))
