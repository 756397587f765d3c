"""Clients that follow a topic while another one erases it, and what they must hear of that.

There is also a topic that takes one message, until it is erased.
"""

import asyncio
import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import inf

from tests.simulation.actors import Plan
from tests.simulation.oracle import Oracle, Publish
from tests.simulation.session import SUBSCRIBE, UNSUBSCRIBE, Session, id_of
from tests.simulation.talker import Denied, Lost, Message

CHANNEL, ONCE = "/topic/a", "/topic/b"
# No rule calls this a topic: publishes do, and this is what they say.
MADE_ONCE = "/made/b"
MADE: Message = {"destroyDelay": -1, "readonly": True, "history": {"maxEntries": 1}}
RULE = {"topic": True, "destroy_delay": 500}
# It takes one message.
RULE_OF_ONCE = {"topic": True, "destroy_delay": -1, "readonly": True, "history": 1}
# How often a publisher makes a topic of its channel.
_MAKES = 0.3
_CALLS = "/service/topics"
_PAUSE_S = 0.2
# The longest time until somebody erases a topic again, or a follower subscribes again.
_KEEPS_S, _MISSES_S = 4.0, 2.0
# How long to wait for the answer to a call.
_PATIENCE_S = 8.0
# How often an erasure also discards what waits, and how often the state is asked for instead.
_FORCES, _ASKS = 0.2, 0.3
# After how long shards have told each other who has subscribed.
_TOLD_S = 2.0
# How long the event of an erasure may wait for replicas.
_TOLD_LATE_S = 5.0


def making(channel: str) -> Message:
    """Return the options of a message, which may make a topic of its channel."""
    if channel.startswith("@") or random.random() >= _MAKES:
        return {}
    return {"topic": {"destroyDelay": 500}}


@dataclass(slots=True)
class _Period:
    """A subscription of a follower: from its reply to the event that ends it."""

    asked_at: float
    since: float = inf
    ended_at: float = inf
    heard: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Erasure:
    """A call that erases the topic; it has an answer unless its client has lost contact."""

    channel: str
    sent_at: float
    is_forced: bool
    answered_at: float = inf
    is_done: bool = False

    @property
    def over_at(self) -> float:
        """When it is carried out everywhere for sure."""
        return self.answered_at if self.is_done else inf


class Erasures:
    """Judges whether an erasure ends every subscription behind all that came before it."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self._periods: dict[str, list[_Period]] = {}
        self._erasures: list[_Erasure] = []
        # How many subscriptions the topic has, as its home has said last.
        self._told: int | None = None
        self._wrong: list[str] = []

    # What happens to followers

    def expects(self, follower: str) -> None:
        """Note that this follower is subscribed in the end."""
        self._periods[follower] = []

    def asks(self, follower: str) -> None:
        """Note that a follower is about to subscribe: it is not subscribed now."""
        self._periods[follower].append(_Period(self._oracle.now()))

    def subscribed(self, follower: str) -> None:
        """Note that the follower is subscribed."""
        self._periods[follower][-1].since = self._oracle.now()

    def is_unsure(self, follower: str) -> None:
        """Note that the follower may be subscribed or not: it will end that."""
        self._periods[follower].pop()

    def heard(self, follower: str, key: str) -> None:
        """Note that a message of the topic has come, for the first time."""
        periods = self._periods[follower]
        if periods and periods[-1].ended_at == inf:
            periods[-1].heard.add(key)
        elif not periods or not (
            self._was_meanwhile(periods[-1]) or self._is_of_then(key, periods[-1])
        ):
            self._wrong.append(f"topics: {follower} got {key} without a subscription")

    def _was_meanwhile(self, period: _Period) -> bool:
        """Return whether the topic was erased about when the follower subscribed.

        Its event then comes last, also if the subscribe, or a repeat of it by a door, came behind.
        """
        return any(
            each.sent_at < period.since and period.asked_at < each.over_at + _TOLD_LATE_S
            for each in self._erasures_of(CHANNEL)
        )

    def _is_of_then(self, key: str, period: _Period) -> bool:
        """Return whether a message was published while the topic was erased."""
        publish = self._oracle.published[key]
        return publish.begun_at < period.ended_at and any(
            each.sent_at < publish.accepted_at for each in self._erasures_of(CHANNEL)
        )

    def ended(self, follower: str) -> None:
        """Note that the subscription was erased."""
        periods = self._periods[follower]
        if not periods or periods[-1].ended_at < inf:
            if periods and self._was_meanwhile(periods[-1]):
                return
            self._wrong.append(f"topics: {follower} lost what it had not subscribed to")
        else:
            periods[-1].ended_at = self._oracle.now()

    # What happens to the topic

    def erases(self, channel: str, *, is_forced: bool) -> _Erasure:
        """Note that somebody is about to erase a topic."""
        erasure = _Erasure(channel, self._oracle.now(), is_forced)
        self._erasures.append(erasure)
        return erasure

    def answered(self, erasure: _Erasure, *, is_done: bool) -> None:
        """Note the answer."""
        erasure.answered_at, erasure.is_done = self._oracle.now(), is_done

    def told(self, asked_at: float, subscribers: int | None) -> None:
        """Note how many subscriptions the topic has, or that there is no topic."""
        self._told = subscribers
        now, periods = self._oracle.now(), [its[-1:] for its in self._periods.values()]
        are_open = all(
            one.since < asked_at - _TOLD_S and one.ended_at == inf for its in periods for one in its
        )
        is_known = are_open and all(periods) and self._oracle.was_calm(asked_at - _TOLD_S, now)
        # The next server of the home hears it again from the others.
        is_known = is_known and not self._oracle.has_restarted(asked_at - _TOLD_S, now)
        is_erased = any(
            each.answered_at > asked_at - _TOLD_S for each in self._erasures_of(CHANNEL)
        )
        is_sure = not is_erased and not self._may_lack_one()
        if is_known and is_sure and subscribers != len(periods):
            self._wrong.append(f"topics: there are {subscribers} of {len(periods)} subscriptions")

    # What it means

    def violations(self) -> list[str]:
        """Return all broken promises."""
        found = [*self._wrong]
        for follower, periods in self._periods.items():
            for period in periods:
                found += [f"topics: {follower} {what}" for what in self._of(period)]
        subscribed = sum(its[-1].ended_at == inf for its in self._periods.values() if its)
        is_right = self._told == subscribed == len(self._periods)
        if not is_right and not self._may_lack_one():
            found.append(f"topics: the home knows {self._told} of {subscribed} subscriptions")
        return [*found, *self._too_many(ONCE), *self._too_many(MADE_ONCE)]

    def _too_many(self, channel: str) -> Iterator[str]:
        """Say which messages were accepted behind another one that was not erased."""
        found = [(key, each) for key, each in self._published(channel) if each.id]
        found.sort(key=lambda each: each[1].accepted_at)
        for (first, before), (second, after) in pairwise(found):
            is_erased = any(
                each.sent_at < after.accepted_at and before.begun_at < each.over_at
                for each in self._erasures_of(channel)
            )
            if before.is_durable and not is_erased:
                yield f"topics: {second} was accepted although {channel} had {first}"

    def _erasures_of(self, channel: str) -> Iterator[_Erasure]:
        return (each for each in self._erasures if each.channel == channel)

    def _may_lack_one(self) -> bool:
        """Return whether a subscription may be gone with what a store has lost."""
        return any(self._may_be_gone(its[-1]) for its in self._periods.values() if its)

    def _may_be_gone(self, period: _Period) -> bool:
        return self._oracle.may_have_lost(period.asked_at, period.since)

    def _of(self, period: _Period) -> Iterator[str]:
        if self._may_be_gone(period):
            return
        ends = [
            each
            for each in self._erasures_of(CHANNEL)
            if each.is_done and each.sent_at > period.since
        ]
        if ends and period.ended_at == inf:
            yield f"does not hear of the erasure at {ends[0].sent_at:.3f}"
        over_at = min((each.answered_at for each in ends), default=inf)
        ends_at = self._may_end_at(period)
        for key, publish in self._published(CHANNEL):
            if key in period.heard and publish.begun_at > over_at:
                yield f"got {key}, which came behind the erasure at {over_at:.3f}"
            is_due = period.since < publish.begun_at and publish.accepted_at < ends_at
            if is_due and publish.is_durable and key not in period.heard:
                yield f"lacks {key}, accepted as {publish.id} before any erasure"

    def _published(self, channel: str) -> Iterator[tuple[str, Publish]]:
        for key, publish in self._oracle.published.items():
            if publish.channel == channel:
                yield key, publish

    def _may_end_at(self, period: _Period) -> float:
        """Return from when on an erasure may have ended this, or discarded what came before."""
        may_end = [
            each
            for each in self._erasures_of(CHANNEL)
            if each.sent_at < period.ended_at and period.asked_at <= each.over_at + _TOLD_LATE_S
        ]
        if any(each.is_forced for each in may_end):
            return -inf
        return min((each.sent_at for each in may_end), default=inf)


class Follower:
    """Subscribes, and does so again when the topic was erased; a named session."""

    def __init__(self, name: str, plan: Plan, truth: Erasures) -> None:
        self._name = name
        self._plan = plan
        self._truth = truth
        self._session = Session(plan.manners, f"{name}/1", take=self._take)
        self._is_subscribed = False
        # Whether nothing that comes is judged, because it does not know whether it is subscribed.
        self._is_unsure = False
        # The events that it has had, and how many came with a reply.
        self._seen: set[str] = set()
        self._count = 0
        truth.expects(name)

    async def run(self) -> None:
        """Follow for ever."""
        while True:
            try:
                if not self._session.client_id:
                    await self._session.begin(delivery={})
                if self._is_unsure:
                    await self._make_sure()
                if not self._is_subscribed:
                    await self._subscribe()
                await self._session.connect()
                if not self._is_subscribed:
                    await self._miss_it()
            except (Lost, Denied):
                if self._is_unsure:
                    # What a frozen server passes on later must be of a former client.
                    self._session.forget()
                await asyncio.sleep(_PAUSE_S * random.random())

    async def _subscribe(self) -> None:
        self._truth.asks(self._name)
        try:
            await self._session.send(SUBSCRIBE, subscription=CHANNEL)
        except (Lost, Denied):
            self._truth.is_unsure(self._name)
            self._is_unsure = True
            raise
        self._is_subscribed = True
        self._truth.subscribed(self._name)

    async def _make_sure(self) -> None:
        """Have no subscription, and nothing that came of one."""
        try:
            await self._session.send(UNSUBSCRIBE, subscription=CHANNEL)
        except Denied as denied:
            if denied.is_elsewhere or denied.ends_session:
                raise
            # It had none.
        self._count = -1
        while self._count:
            self._count = 0
            await self._session.connect()
        self._is_unsure = False

    async def _miss_it(self) -> None:
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + _MISSES_S * random.random()
        while loop.time() < ends_at:
            await self._session.connect()

    def _take(self, event: Message) -> None:
        self._count += 1
        if (id := id_of(event)) in self._seen:
            return
        self._seen.add(id)
        if self._is_unsure:
            return
        if event["ext"]["delivery"].get("state") == "ERASED":
            self._is_subscribed = False
            self._truth.ended(self._name)
        else:
            self._truth.heard(self._name, event["data"]["key"])


class Eraser:
    """Erases topics now and then, and asks for the state of one."""

    def __init__(self, plan: Plan, truth: Erasures, oracle: Oracle) -> None:
        self._plan = plan
        self._truth = truth
        self._oracle = oracle
        # On a socket, answers would come while a connect is held: it asks more often without.
        self._session = Session(replace(plan.manners, sockets=0.0), take=self._take)
        self._serial = 0
        self._answer: Message | None = None

    async def run(self) -> None:
        """Erase until the plan is over, and ask for ever."""
        while True:
            try:
                if not self._session.client_id:
                    await self._session.begin()
                if self._plan.is_over or random.random() < _ASKS:
                    await self._ask()
                else:
                    channel = random.choice((CHANNEL, ONCE, MADE_ONCE))
                    await self._erase(channel, is_forced=random.random() < _FORCES)
                await asyncio.sleep(_KEEPS_S * random.random())
            except (Lost, Denied):
                # The answer comes no more.
                self._session.forget()
                await asyncio.sleep(_PAUSE_S * random.random())

    async def _erase(self, channel: str, *, is_forced: bool) -> None:
        erasure = self._truth.erases(channel, is_forced=is_forced)
        answer = await self._call({"erase": channel, "forceDestroy": is_forced})
        is_done = answer["successful"] and channel in answer["data"]["erased"]
        self._truth.answered(erasure, is_done=is_done)

    async def _ask(self) -> None:
        asked_at = self._oracle.now()
        answer = await self._call({"state": CHANNEL})
        is_known = answer["successful"]
        if is_known or answer["data"]["code"] == "user.oid.unknown":
            self._truth.told(asked_at, answer["data"]["subscribers"] if is_known else None)

    async def _call(self, data: Message) -> Message:
        """Call the service; returns its answer, which may come with a later reply."""
        self._serial += 1
        self._answer = None
        await self._session.send(_CALLS, id=str(self._serial), data=data)
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + _PATIENCE_S
        while self._answer is None:
            if loop.time() > ends_at:
                # A server that stops does not answer what others are asked for.
                raise Lost("no answer")
            await self._session.connect()
        return self._answer

    def _take(self, event: Message) -> None:
        if event["channel"] == _CALLS and event["id"] == str(self._serial):
            self._answer = event
