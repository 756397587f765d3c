"""Clients: publishers that repeat, named receivers that acknowledge, and plain ones."""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.simulation.judges.deliveries import Deliveries
from tests.simulation.oracle import Oracle
from tests.simulation.session import SUBSCRIBE, Attempt, Manners, Session, batch_of, id_of
from tests.simulation.talker import Denied, Lost, Message, Talker, reply_to
from tests.simulation.tokens import Pass

PTP = "/service/ptp"

# How many messages are published until they are accepted; and how many once, as durable as their
# receivers are. The rest is passing.
_INSISTING, _ORDINARY = 0.5, 0.2
# How often the next one follows at once, on the same channel.
_HASTE = 0.2
_PAUSE_S = 0.2
# How often a receiver does not connect at once, and how much later it does at most.
_NAP, _NAP_S = 0.1, 4.0
# How often a named receiver begins anew behind a connect, as if it had crashed, and how often it
# then acknowledges what it knew before.
_CRASHES, _ACKS_AGAIN = 0.02, 0.5
# How often a named receiver subscribes to one more channel, to how many at most, how many of those
# get messages, and how often.
_CURIOSITY, _MOST_OWN, _NEW_CHANNELS, _TO_NEW = 0.1, 20, 3, 0.4
# How often messages without a session are durable, and how many are published in one request.
_DURABLE, _AT_ONCE = 0.2, (1, 1, 1, 2, 5)
# How often a message goes to one receiver without a channel.
_TO_RECEIVER = 0.2


@dataclass(slots=True)
class Plan:
    """What clients do, and for how long; times are by their own clock."""

    manners: Manners
    # Everybody subscribes to these.
    channels: Sequence[str]
    pause_s: float
    # The receivers that get messages without a channel.
    addressed: Sequence[str] = ()
    is_over: bool = False
    # Channels with one subscriber each, the latest.
    new_channels: deque[str] = field(default_factory=lambda: deque(maxlen=_NEW_CHANNELS))

    def choose_channel(self) -> str:
        """Return where the next message goes: often where somebody has subscribed just now."""
        if self.addressed and random.random() < _TO_RECEIVER:
            return to_receiver(random.choice(self.addressed))
        if self.new_channels and random.random() < _TO_NEW:
            return random.choice([self.new_channels[-1], *self.new_channels])
        return random.choice(self.channels)


def to_receiver(name: str) -> str:
    """Return what stands for a channel where a message is addressed to this receiver."""
    return f"@{name}"


def _addressed(channel: str, data: Message) -> tuple[str, Message]:
    """Return the channel and the data of a message to a channel, or to a receiver."""
    if not channel.startswith("@"):
        return channel, data
    # It may wait until the receiver comes.
    destination = {"name": channel[1:], "forceQueuing": True}
    return PTP, {"destinations": [destination], "content": data}


class Publisher:
    """Publishes one message after the other, each with a key, until it is accepted.

    Args:
        channels: Where it publishes, if the plan does not say it.
        options: Returns what it asks for besides, of a message on a channel.
        log_in: Returns the token that it logs in with, if it is another one than others have.
    """

    def __init__(
        self,
        name: str,
        plan: Plan,
        oracle: Oracle,
        *,
        channels: Sequence[str] = (),
        options: Callable[[str], Message] = lambda _: {},
        log_in: Callable[[], Pass] | None = None,
    ) -> None:
        self.name = name
        self._options = options
        self._plan = plan
        self._oracle = oracle
        self._channels = channels
        self._session = Session(plan.manners, f"{name}/1", log_in=log_in)
        self._serial = 0
        # Whether everything it published is accepted.
        self.is_done = False

    async def run(self) -> None:
        """Publish until the plan is over."""
        channel = self._choose_channel()
        while not self._plan.is_over:
            self._serial += 1
            await self._publish_next(channel)
            if random.random() >= _HASTE:
                await asyncio.sleep(self._plan.pause_s * 2 * random.random())
                channel = self._choose_channel()
        self.is_done = True

    def _choose_channel(self) -> str:
        return random.choice(self._channels) if self._channels else self._plan.choose_channel()

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
        further = self._options(channel)
        delivery.update(further)
        if "expiration" in further:
            self._oracle.published[key].lifetime_s = further["expiration"]["lifeTime"] / 1000
        while True:
            told = await self._publish(channel, {"key": key}, delivery)
            if told is not None:
                self._oracle.accepted(key, told)
            if told is not None or not insists:
                return
            await asyncio.sleep(_PAUSE_S * random.random())

    async def _publish(self, channel: str, data: Message, delivery: Message) -> str | None:
        """Publish once. Returns the message's id; None if it is not accepted."""
        place, content = _addressed(channel, data)
        try:
            if not self._session.client_id:
                await self._session.begin()
                self._oracle.begun(self.name, self._session.client_id)
            reply = await self._session.send(place, data=content, ext={"delivery": delivery})
        except (Lost, Denied):
            return None
        return str(reply["ext"]["delivery"]["id"])


class Poster:
    """Publishes without a session, each message once: most are passing, and wait for no store.

    Args:
        channels: Where it publishes, if the plan does not say it.
        topic: What it makes of the channels.
    """

    def __init__(
        self,
        name: str,
        plan: Plan,
        oracle: Oracle,
        *,
        channels: Sequence[str] = (),
        topic: Message | None = None,
    ) -> None:
        self._name = name
        self._channels = channels or plan.channels
        self._options: Message = {} if topic is None else {"topic": topic}
        self._plan = plan
        self._oracle = oracle
        self._talker = Talker(plan.manners.doors, "/publish")
        self._serial = 0

    async def run(self) -> None:
        """Publish until the plan is over."""
        while not self._plan.is_over:
            await self._post(random.choice(_AT_ONCE))
            await asyncio.sleep(self._plan.pause_s * 2 * random.random())

    async def _post(self, count: int) -> None:
        """Publish so many messages in one request."""
        channel, is_durable = random.choice(self._channels), random.random() < _DURABLE
        delivery = {"persistent": is_durable, **self._options}
        keys = [self._name_next(channel, is_durable=is_durable) for _ in range(count)]
        messages: list[Message] = [
            {"channel": channel, "data": {"key": key}, "ext": {"delivery": delivery}}
            for key in keys
        ]
        witness = self._plan.manners.witness
        attempts = [
            Attempt(self._name, "", channel, self._talker.door[0], witness.now()) for _ in keys
        ]
        for attempt in attempts:
            witness.begins(attempt)
        try:
            found = await self._talker.ask(messages, limit_s=self._plan.manners.answer_s)
        except Lost as lost:
            witness.failed(attempts[0], lost)
            self._talker.hang_up()
            return
        for key, attempt, answer in zip(keys, attempts, found, strict=True):
            try:
                reply = reply_to(channel, [answer])
            except Denied as denied:
                witness.failed(attempt, denied)
            else:
                self._oracle.accepted(key, str(reply["ext"]["delivery"]["id"]))

    def _name_next(self, channel: str, *, is_durable: bool) -> str:
        """Return the key of the next message, which is about to be published."""
        self._serial += 1
        key = f"{self._name}-{self._serial}"
        self._oracle.publishes(
            *(key, self._name, self._serial, channel), is_durable=is_durable, is_repeated=False
        )
        return key


class Receiver:
    """Connects again and again; a named one keeps its session, and acknowledges.

    Args:
        begins_after_s: When it comes.
        log_in: Returns the token that it logs in with, if it is another one than others have.
    """

    def __init__(
        self,
        name: str,
        plan: Plan,
        oracle: Oracle,
        deliveries: Deliveries,
        *,
        is_named: bool,
        begins_after_s: float = 0.0,
        log_in: Callable[[], Pass] | None = None,
    ) -> None:
        self.name = name
        self._deliveries = deliveries
        self._plan = plan
        self._oracle = oracle
        self._is_named = is_named
        self._begins_after_s = begins_after_s
        self._session = Session(
            plan.manners, f"{name}/1" if is_named else "", take=self._take, log_in=log_in
        )
        self._channels = [*plan.channels]
        self._subscribed: set[str] = set()
        # How many sessions this receiver has had.
        self._sessions = 0
        # What came with the reply that the next connect acknowledges, and since then.
        self._handed: list[str] = []
        self._fresh: list[str] = []
        # What it may have acknowledged, although nobody has answered that.
        self._doubted: set[str] = set()

    @property
    def _who(self) -> str:
        return self.name if self._is_named else f"{self.name}#{self._sessions}"

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
                if self._is_named and not self._plan.is_over and random.random() < _CRASHES:
                    self._oracle.forgets(self.name, but=self._doubted)
                    self._session.crash(acks_again=random.random() < _ACKS_AGAIN)
                if random.random() < _NAP:
                    # Its messages wait, unlike those of others.
                    await asyncio.sleep(_NAP_S * random.random())
            except (Lost, Denied):
                self._doubted.update(self._handed)
                await asyncio.sleep(_PAUSE_S * random.random())

    async def _begin(self) -> None:
        reply = await self._session.begin()
        told = (reply.get("ext") or {}).get("delivery") or {}
        if not told.get("resumed"):
            self._sessions += 1
            self._subscribed.clear()
        self._subscribed.difference_update(told.get("session", {}).get("lostSubscriptions", ()))
        # Its home, and the queue of this session.
        for client in (self.name, self._who):
            self._oracle.begun(client, self._session.client_id)
        if self._is_named:
            self._note_subscription(to_receiver(self.name))
        self._handed.clear()
        for channel in self._channels:
            if channel not in self._subscribed:
                await self._subscribe(channel)

    async def _subscribe_to_one_more(self) -> None:
        """Subscribe to a channel that nobody knew so far."""
        if len(self._channels) < _MOST_OWN:
            self._channels.append(f"/{self.name}/{len(self._channels)}")
            await self._subscribe(self._channels[-1])
            self._plan.new_channels.append(self._channels[-1])

    async def _subscribe(self, channel: str) -> None:
        try:
            await self._session.send(SUBSCRIBE, subscription=channel)
        except (Denied, Lost):
            # Without all its subscriptions it is no session of this receiver.
            self._session.forget()
            raise
        self._subscribed.add(channel)
        self._note_subscription(channel)

    def _note_subscription(self, channel: str) -> None:
        self._deliveries.subscribed(self._who, channel)
        if self._is_named:
            self._oracle.subscribed(self.name, channel)

    async def _connect(self) -> None:
        self._fresh = []
        self._deliveries.waits(self._who)
        reply = await self._session.connect()
        self._deliveries.hears(self._who)
        if batch_of(reply) is not None:
            self._oracle.settled(self.name, self._handed, self._fresh)
            self._handed = self._fresh
        else:
            # A door has answered it alone.
            self._doubted.update(self._handed)
        self._oracle.hears(self.name)

    def _take(self, event: Message) -> None:
        key, id = event["data"]["key"], id_of(event)
        self._oracle.received(self._who, key, id, is_named=self._is_named)
        self._deliveries.received(self._who, key)
        self._fresh.append(id)
