"""Clients: publishers that repeat, named receivers that acknowledge, and plain ones."""

import asyncio
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.oracle import Oracle
from tests.simulation.talker import Denied, Lost, Message, Talker, reply_to

HANDSHAKE, CONNECT, SUBSCRIBE = "/meta/handshake", "/meta/connect", "/meta/subscribe"
# How many messages are published until they are accepted; and how many once, as durable as their
# receivers are. The rest is passing.
_INSISTING, _ORDINARY = 0.5, 0.2
# How often the next one follows at once, on the same channel.
_HASTE = 0.2
_PAUSE_S = 0.2
# How often a receiver does not connect at once, and how much later it does at most.
_NAP, _NAP_S = 0.1, 4.0
# How often a named receiver subscribes to one more channel, to how many at most, how many of those
# get messages, and how often.
_CURIOSITY, _MOST_OWN, _NEW_CHANNELS, _TO_NEW = 0.1, 20, 3, 0.4
# How much longer than the server a client holds a connect.
_PATIENCE_S = 4.0


@dataclass(slots=True)
class Plan:
    """What clients do, and for how long; times are by their own clock."""

    doors: Sequence[tuple[str, int]]
    # Everybody subscribes to these.
    channels: Sequence[str]
    timeout_s: float
    pause_s: float
    # How long a client waits for the answer to anything but a connect.
    answer_s: float
    is_over: bool = False
    # Channels with one subscriber each, the latest.
    new_channels: deque[str] = field(default_factory=lambda: deque(maxlen=_NEW_CHANNELS))

    def choose_channel(self) -> str:
        """Return where the next message goes: often where somebody has subscribed just now."""
        if self.new_channels and random.random() < _TO_NEW:
            return random.choice([self.new_channels[-1], *self.new_channels])
        return random.choice(self.channels)

    async def begin(self, talker: Talker, delivery: dict[str, Any] | None) -> Message:
        """Begin or resume a session; returns the reply."""
        ext = {} if delivery is None else {"ack": True, "delivery": delivery}
        message = {
            "channel": HANDSHAKE,
            "version": "1.0",
            "supportedConnectionTypes": ["long-polling"],
            "ext": ext,
        }
        return reply_to(HANDSHAKE, await talker.ask([message], limit_s=self.answer_s))


@dataclass(slots=True)
class _Session:
    """What a client knows of its session."""

    client_id: str = ""
    ack: int = 0
    # What came with the reply that the next connect acknowledges.
    ids: list[str] = field(default_factory=list)
    subscribed: set[str] = field(default_factory=set)


class Publisher:
    """Publishes one message after the other, each with a key, until it is accepted."""

    def __init__(self, name: str, plan: Plan, oracle: Oracle) -> None:
        self.name = name
        self._plan = plan
        self._oracle = oracle
        self._talker = Talker(plan.doors)
        self._client_id = ""
        self._serial = 0
        # Whether everything it published is accepted.
        self.is_done = False

    async def run(self) -> None:
        """Publish until the plan is over."""
        channel = self._plan.choose_channel()
        while not self._plan.is_over:
            self._serial += 1
            await self._publish_next(channel)
            if random.random() >= _HASTE:
                await asyncio.sleep(self._plan.pause_s * 2 * random.random())
                channel = self._plan.choose_channel()
        self.is_done = True

    async def _publish_next(self, channel: str) -> None:
        """Publish a message, perhaps until it is accepted."""
        key, chance = f"{self.name}-{self._serial}", random.random()
        insists, is_ordinary = chance < _INSISTING, _INSISTING <= chance < _INSISTING + _ORDINARY
        self._oracle.publishes(
            *(key, self.name, self._serial, channel),
            is_durable=insists or is_ordinary,
            is_repeated=insists,
        )
        delivery: Message = {"key": key, "persistent": True} if insists else {}
        if not insists and not is_ordinary:
            delivery = {"persistent": False}
        while True:
            told = await self._publish(channel, {"key": key}, delivery)
            if told is not None:
                self._oracle.accepted(key, told)
            if told is not None or not insists:
                return
            await asyncio.sleep(_PAUSE_S * random.random())

    async def _publish(self, channel: str, data: Message, delivery: Message) -> str | None:
        """Publish once. Returns the message's id; None if it is not accepted."""
        try:
            if not self._client_id:
                session = {"session": f"{self.name}/1"}
                self._client_id = (await self._plan.begin(self._talker, session))["clientId"]
                self._oracle.begun(self.name, self._client_id)
            message = {
                "channel": channel,
                "clientId": self._client_id,
                "data": data,
                "ext": {"delivery": delivery},
            }
            reply = reply_to(
                channel, await self._talker.ask([message], limit_s=self._plan.answer_s)
            )
        except Lost:
            return None
        except Denied as denied:
            if denied.is_elsewhere:
                self._talker.hang_up()
            if denied.advice.get("reconnect") == "handshake" or str(denied).startswith("402"):
                self._client_id = ""
            return None
        return str(reply["ext"]["delivery"]["id"])


class Receiver:
    """Connects again and again; a named one keeps its session, and acknowledges.

    Args:
        begins_after_s: When it comes.
    """

    def __init__(
        self, name: str, plan: Plan, oracle: Oracle, *, is_named: bool, begins_after_s: float = 0.0
    ) -> None:
        self.name = name
        self._plan = plan
        self._oracle = oracle
        self._is_named = is_named
        self._begins_after_s = begins_after_s
        self._talker = Talker(plan.doors)
        self._session = _Session()
        self._channels = [*plan.channels]
        # How many sessions this receiver has had, and when its last connect was answered.
        self._sessions = 0

    async def run(self) -> None:
        """Receive for ever."""
        await asyncio.sleep(self._begins_after_s)
        while True:
            try:
                if not self._session.client_id:
                    await self._begin()
                await self._connect()
                if self._is_named and random.random() < _CURIOSITY:
                    await self._subscribe_to_one_more()
                if random.random() < _NAP:
                    # Its messages wait, unlike those of others.
                    await asyncio.sleep(_NAP_S * random.random())
            except Lost:
                await asyncio.sleep(_PAUSE_S * random.random())
            except Denied as denied:
                if denied.is_elsewhere:
                    self._talker.hang_up()
                if denied.advice.get("reconnect") != "retry":
                    self._session.client_id = ""
                await asyncio.sleep(_PAUSE_S * random.random())

    async def _begin(self) -> None:
        session = self._session
        delivery = {"session": f"{self.name}/1"} if self._is_named else None
        reply = await self._plan.begin(self._talker, delivery)
        told = (reply.get("ext") or {}).get("delivery") or {}
        if not told.get("resumed"):
            self._sessions += 1
            session.subscribed.clear()
        session.subscribed.difference_update(told.get("session", {}).get("lostSubscriptions", ()))
        session.ack, session.client_id = 0, reply["clientId"]
        self._oracle.begun(self.name, session.client_id)
        session.ids.clear()
        for channel in self._channels:
            if channel not in session.subscribed:
                await self._subscribe(channel)

    async def _subscribe_to_one_more(self) -> None:
        """Subscribe to a channel that nobody knew so far."""
        if len(self._channels) < _MOST_OWN:
            self._channels.append(f"/{self.name}/{len(self._channels)}")
            await self._subscribe(self._channels[-1])
            self._plan.new_channels.append(self._channels[-1])

    async def _subscribe(self, channel: str) -> None:
        message = {
            "channel": SUBSCRIBE,
            "clientId": self._session.client_id,
            "subscription": channel,
        }
        try:
            reply_to(SUBSCRIBE, await self._talker.ask([message], limit_s=self._plan.answer_s))
        except (Denied, Lost):
            # Without all its subscriptions it is no session of this receiver.
            self._session.client_id = ""
            raise
        self._session.subscribed.add(channel)
        if self._is_named:
            self._oracle.subscribed(self.name, channel)

    async def _connect(self) -> None:
        session = self._session
        message: Message = {
            "channel": CONNECT,
            "clientId": session.client_id,
            "connectionType": "long-polling",
        }
        if self._is_named:
            message["ext"] = {"ack": session.ack}
        limit_s = self._plan.timeout_s * 1.25 + _PATIENCE_S
        found = await self._talker.ask([message], limit_s=limit_s)
        # A reply that refuses the connect may still come with events.
        ids = [self._take(event) for event in found if "successful" not in event]
        reply = reply_to(CONNECT, found)
        batch = (reply.get("ext") or {}).get("ack")
        if batch is not None:
            self._oracle.settled(self.name, session.ids)
            session.ack, session.ids = batch, ids
        self._oracle.hears(self.name)

    def _take(self, event: Message) -> str:
        who = self.name if self._is_named else f"{self.name}#{self._sessions}"
        id = _id_of(event)
        self._oracle.received(who, event["data"]["key"], id, is_named=self._is_named)
        return id


def _id_of(event: Message) -> str:
    delivery: dict[str, Any] = (event.get("ext") or {}).get("delivery") or {}
    return str(event.get("id") or delivery.get("id") or "")
