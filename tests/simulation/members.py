"""Clients that come to a channel with presence and leave it, and others that watch who is there."""

import asyncio
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.simulation.actors import Plan
from tests.simulation.oracle import Oracle
from tests.simulation.process import Process
from tests.simulation.session import SUBSCRIBE, UNSUBSCRIBE, Session
from tests.simulation.talker import Denied, Lost, Message

ROOM = "/room/a"
RULE = {"presence": True}
_EVENTS, _CALLS = f"/sys/presence{ROOM}", "/service/presence"
_PAUSE_S = 0.2
# How often a member comes or goes behind a connect, and how often one without a name ends.
_MOVES, _ENDS = 0.4, 0.1
# How often a watcher asks behind a connect.
_ASKS = 0.3


class _Move(NamedTuple):
    """That a member with a name came or left, when it asked for that, and of which server."""

    session: str
    since: float
    until: float
    server: Process | None


class Attendance:
    """Knows who is in the room, and what watchers think."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        # By member; None while the member does not know itself whether it is there.
        self._there: dict[str, str | None] = {}
        # By member, the last move.
        self._moves: dict[str, _Move] = {}
        self._asked: dict[str, frozenset[str] | None] = {}
        self._followed: dict[str, frozenset[str] | None] = {}

    def expects_member(self, member: str) -> None:
        """Note that this client may be there."""
        self._there[member] = ""

    def expects_watcher(self, watcher: str) -> None:
        """Note that this client must know in the end who is there."""
        self._asked[watcher] = self._followed[watcher] = None

    def stays(self, member: str, session: str | None) -> None:
        """Note with which session a member is there: the empty text if it is not."""
        self._there[member] = session

    def begun(self, member: str, client_id: str) -> None:
        """Note the session of a member."""
        self._oracle.begun(member, client_id)

    def moved(self, member: str, session: str, since: float) -> None:
        """Note that a server has let a member with a name come or leave."""
        oracle = self._oracle
        self._moves[member] = _Move(session, since, oracle.now(), oracle.home_of(member))

    def now(self) -> float:
        return self._oracle.now()

    def asked(self, watcher: str, sessions: frozenset[str]) -> None:
        """Note who is there, as the server has answered."""
        self._asked[watcher] = sessions

    def followed(self, watcher: str, sessions: frozenset[str] | None) -> None:
        """Note who is there, as events say."""
        self._followed[watcher] = sessions

    def violations(self, *, trusts_clocks: bool) -> list[str]:
        """Return what watchers do not know.

        Args:
            trusts_clocks: Whether all servers have one clock. Otherwise one may hear of a time at
                which the events that it holds are over.
        """
        followed = self._wrong(self._followed, "follows") if trusts_clocks else ()
        return [*self._wrong(self._asked, "is told"), *followed]

    def _wrong(self, known: dict[str, frozenset[str] | None], what: str) -> Iterator[str]:
        there = self._members()
        for watcher, sessions in known.items():
            if sessions != there:
                said = None if sessions is None else sorted(sessions)
                yield f"presence: {watcher} {what} {said}, and there are {sorted(map(str, there))}"

    def _members(self) -> frozenset[str | None]:
        """Return who is there; of those who may or may not be, who is as one watcher was told.

        Only publishes wait for replicas: a failover may have lost a move.
        """
        there = frozenset(self._there.values()) - {""}
        unsure = {
            session
            for session, since, until, server in self._moves.values()
            if self._oracle.may_have_forgotten(server, since, until)
        }
        told = next(iter(self._asked.values()), None) or frozenset()
        return (there - unsure) | (told & unsure)


class Member:
    """Comes and goes; one without a name also ends, and comes as another session."""

    def __init__(self, name: str, plan: Plan, truth: Attendance, *, is_named: bool) -> None:
        self._name = name
        self._truth = truth
        self._plan = plan
        self._is_named = is_named
        self._session = Session(plan.manners, f"{name}/1" if is_named else "")
        self._is_there: bool | None = False
        self._session_name = ""
        truth.expects_member(name)

    async def run(self) -> None:
        """Come and go."""
        while True:
            try:
                if not self._session.client_id:
                    await self._begin()
                if self._is_there is None:
                    await self._move(comes=True)
                await self._session.connect()
                if not self._plan.is_over and random.random() < _MOVES:
                    await self._move(comes=not self._is_there)
                if not self._plan.is_over and not self._is_named and random.random() < _ENDS:
                    self._session.forget()
            except (Lost, Denied):
                if self._is_there is None:
                    # Its last request may arrive later, behind the next one: it comes as another
                    # client, for which that request does not count.
                    self._session.forget()
                await asyncio.sleep(_PAUSE_S * random.random())

    async def _begin(self) -> None:
        """Begin a session; that of a member without a name is in the room no more."""
        ext: dict[str, Any] = {} if self._is_named else {"delivery": {}}
        if not self._is_named:
            self._note(is_there=False)
        reply = await self._session.begin(**ext)
        self._truth.begun(self._name, self._session.client_id)
        told = reply["ext"]["delivery"]
        self._session_name = told["session"]["name"]
        if not told.get("resumed"):
            self._note(is_there=False)

    async def _move(self, *, comes: bool) -> None:
        self._note(is_there=None)
        what, since = SUBSCRIBE if comes else UNSUBSCRIBE, self._truth.now()
        await self._session.send(what, subscription=ROOM)
        self._note(is_there=comes)
        if self._is_named:
            self._truth.moved(self._name, self._session_name, since)

    def _note(self, *, is_there: bool | None) -> None:
        self._is_there = is_there
        session = None if is_there is None else self._session_name if is_there else ""
        self._truth.stays(self._name, session)


class Watcher:
    """Follows who is in the room, and asks now and then."""

    def __init__(self, name: str, plan: Plan, truth: Attendance) -> None:
        self._name = name
        self._plan = plan
        self._truth = truth
        self._session = Session(plan.manners, take=self._take)
        # None until it has asked in this session.
        self._known: set[str] | None = None
        self._asks_id = ""
        truth.expects_watcher(name)

    async def run(self) -> None:
        """Watch for ever."""
        while True:
            try:
                if not self._session.client_id:
                    await self._begin()
                if self._known is None or self._plan.is_over or random.random() < _ASKS:
                    await self._ask()
                await self._session.connect()
            except Lost:
                # What it did not get comes no more.
                self._session.forget()
            except Denied:
                await asyncio.sleep(_PAUSE_S * random.random())

    async def _begin(self) -> None:
        self._known = None
        self._truth.followed(self._name, None)
        await self._session.begin()
        try:
            await self._session.send(SUBSCRIBE, subscription=_EVENTS)
        except Denied:
            self._session.forget()
            raise

    async def _ask(self) -> None:
        await self._session.send(_CALLS, data={"channel": ROOM, "limit": 1000})

    def _answered(self, there: set[str]) -> None:
        self._truth.asked(self._name, frozenset(there))
        if self._known is None:
            self._follow(there)

    def _take(self, event: Message) -> None:
        if event["channel"] == _CALLS:
            if event["successful"]:
                self._answered({each["session"] for each in event["data"]["members"]})
            return
        if self._known is None:
            # It is going to ask.
            return
        data = event["data"]
        left = {each["session"] for each in data["left"]}
        joined = {each["session"] for each in data["joined"]}
        there = (self._known - left) | joined
        self._follow(there)
        if len(there) != data["count"]:
            # The documentation says to ask again.
            self._known = None

    def _follow(self, there: set[str]) -> None:
        self._known = there
        self._truth.followed(self._name, frozenset(there))
