"""Clients that read histories from where they were, and what they must have seen in the end."""

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import Any

from tests.simulation.actors import Plan
from tests.simulation.oracle import Publish
from tests.simulation.session import SUBSCRIBE, Session
from tests.simulation.talker import Denied, Lost, Message

# What the server has to be told about these channels: all messages are kept.
PATTERN, CHANNELS = "/kept/**", ("/kept/a", "/kept/b")
RULE = {"history": 10_000, "durable": True}
_OLDEST = -2
_PAUSE_S = 0.2
# How long servers wait for their stores at least, before a publisher is told to try again.
_ANSWERS_S = 4.5
# The longest time until a client begins again with another session.
_VISIT_S = 6.0


class Histories:
    """Judges what readers of histories got.

    Args:
        published: All messages by key.
        is_excused: Whether a failover may have lost what a message's publisher was not told.
    """

    def __init__(
        self,
        published: dict[str, Publish],
        is_excused: Callable[[Publish], bool],
        may_be_gone: Callable[[Publish], bool],
    ) -> None:
        self._published = published
        self._is_excused = is_excused
        self._may_be_gone = may_be_gone
        # What each reader has, and when it was last told that it has everything so far.
        self._known: dict[str, set[str]] = {}
        self._told_at: dict[str, float] = {}
        # The places of messages in their channels, as anybody saw them.
        self._places: dict[str, set[int]] = {}
        self._wrong: list[str] = []
        # The keys of messages that came behind later ones, and to whom.
        self._late: list[tuple[str, str]] = []

    def expects(self, reader: str) -> None:
        """Note that this reader must have everything in the end."""
        self._known[reader], self._told_at[reader] = set(), -inf

    def received(self, visit: "Visit", channel: str, key: str, place: int) -> None:
        """Note that a message has arrived."""
        self._known[visit.reader].add(key)
        self._places.setdefault(key, set()).add(place)
        if (channel, place) in visit.places:
            if not visit.may_repeat:
                self._wrong.append(f"histories: {visit.reader} got {key} again")
            return
        visit.places.add((channel, place))
        if place <= visit.last.get(channel, 0):
            self._late.append((key, visit.reader))
        visit.last[channel] = max(place, visit.last.get(channel, 0))

    def told(self, reader: str, at: float) -> None:
        """Note that a connect was answered with a cursor."""
        self._told_at[reader] = at

    def violations(self, since: float, *, trusts_clocks: bool) -> list[str]:
        """Return what readers lack, and what they got too much of.

        Args:
            trusts_clocks: Whether no clock was set forward and back. Otherwise a killed server may
                have given ids to messages that it did not store, and the next one gives lower ones.
        """
        late = self._behind_later() if trusts_clocks else ()
        return [*self._wrong, *late, *self._lacking(), *self._doubled(), *self._untold(since)]

    def _behind_later(self) -> Iterator[str]:
        for key, reader in self._late:
            publish = self._published[key]
            # A store that answers so late has kept it at its place all the same.
            if publish.accepted_at - publish.begun_at < _ANSWERS_S:
                yield f"histories: {reader} got {key} behind a later one"

    def _lacking(self) -> Iterator[str]:
        for key, publish in self._published.items():
            if publish.channel in CHANNELS and publish.is_durable and publish.id:
                for reader, known in self._known.items():
                    if key not in known and not self._may_be_gone(publish):
                        yield f"histories: {reader} lacks {key}, accepted as {publish.id}"

    def _doubled(self) -> Iterator[str]:
        for key, places in self._places.items():
            if len(places) > 1 and not self._is_excused(self._published[key]):
                yield f"histories: {key} is at several places"

    def _untold(self, since: float) -> Iterator[str]:
        for reader, at in self._told_at.items():
            if at < since:
                yield f"liveness: {reader} gets no cursor"


class Visit:
    """What a reader got in one session."""

    def __init__(self, reader: str, *, may_repeat: bool) -> None:
        self.reader = reader
        # Whether what is not acknowledged comes again.
        self.may_repeat = may_repeat
        # Channels with homes at several shards may have the same places.
        self.places: set[tuple[str, int]] = set()
        self.last: dict[str, int] = {}


class Historian:
    """Reads, goes, and comes back with the cursor that it was told last."""

    def __init__(self, name: str, plan: Plan, truth: Histories, now: Callable[[], float]) -> None:
        self._name = name
        self._plan = plan
        self._truth = truth
        self._now = now
        self._cursor: Any = _OLDEST
        truth.expects(name)

    async def run(self) -> None:
        """Read for ever."""
        while True:
            try:
                await self._visit(random.uniform(0.0, _VISIT_S))
            except (Lost, Denied):
                await asyncio.sleep(_PAUSE_S * random.random())

    async def _visit(self, for_s: float) -> None:
        acks = random.random() < 0.5
        visit = Visit(self._name, may_repeat=acks)
        session = Session(
            self._plan.manners, acks=acks, take=lambda event: self._take(visit, event)
        )
        loop = asyncio.get_running_loop()
        await session.begin(replay=True)
        subscriptions = (PATTERN,) if random.random() < 0.5 else CHANNELS
        await self._subscribe(session, subscriptions)
        ends_at = loop.time() + for_s
        while session.client_id and (self._plan.is_over or loop.time() < ends_at):
            reply = await session.connect()
            told = (reply.get("ext") or {}).get("replay")
            if told is not None:
                self._cursor = told
                self._truth.told(self._name, self._now())

    async def _subscribe(self, session: Session, subscriptions: Sequence[str]) -> None:
        """Subscribe, and try again where a shard cannot be reached."""
        for each in subscriptions:
            while True:
                try:
                    await session.send(SUBSCRIBE, subscription=each, ext={"replay": self._cursor})
                    break
                except Denied as denied:
                    if not denied.is_elsewhere or not session.client_id:
                        raise
                    await asyncio.sleep(_PAUSE_S * random.random())

    def _take(self, visit: Visit, event: Message) -> None:
        place = event["ext"]["replay"]["cursor"]
        self._truth.received(visit, event["channel"], event["data"]["key"], place)
