"""Generates the events of a node: publishes, and the outcome of every copy.

Events of durable sessions come as from the store's scripts, which know messages by their ids.
"""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate

from holdfast.delivery.dead_letters import fingerprint
from holdfast.delivery.messages import Message
from holdfast.journal.builder import FrameBuilder
from holdfast.journal.schema import BOOKS_S, Kind

_BOOKS_US = int(BOOKS_S * 1e6)
# Rows of a frame.
_FULL = 2000
# 2025-11-20 00:00 UTC.
BEGINNING = 1_763_596_800_000_000
# The average number of publishes in one turn of the event loop.
_PUBLISHES = 4
_LATENCY_US = 13_000

_TROUBLE = 0.02
_URGENT = 0.05
_POISON = 0.0005
_EXPIRED = 0.0005
_OVERFLOW = 0.0003
_HELD_US = 30_000_000

_REFUSALS = (
    "user.update.deadMessage",
    "user.update.internalError",
    "user.update.illegalArgument",
)
_LOST = "communication.noConnection"
_WIRES = [b"x" * size for size in (120, 180, 240, 320, 500, 900, 1700)]


class Sort(Enum):
    """What settles the messages of a receiver, and whether its queue is stored."""

    PLAIN = "plain"
    ACKS = "acks"
    KEPT = "kept"


class Receiver:
    """One session."""

    __slots__ = ("is_kept", "name", "sort")

    def __init__(self, name: str, sort: Sort) -> None:
        self.name = name
        self.sort = sort
        self.is_kept = sort is Sort.KEPT


@dataclass(frozen=True, slots=True)
class Town:
    """The channels, receivers and publishers of a node."""

    channels: list[str]
    # The cumulative weight of each channel, and its subscribers.
    weights: list[float]
    subscribers: list[list[Receiver]]
    receivers: list[Receiver]
    senders: list[str]


@dataclass(frozen=True, slots=True)
class Size:
    """How many receivers and channels a town has, and which share of messages one channel has."""

    receivers: int = 1250
    channels: int = 200
    # By default no more than the first of channels whose shares fall like 1, 1/2, 1/3, ...
    busiest: float | None = None


ORDINARY = Size()


def settle_town(node: int, dice: random.Random, size: Size) -> Town:
    """Make a town: few channels have most of the messages, and few have many subscribers."""
    receivers, channels = size.receivers, size.channels
    people = []
    for n in range(receivers):
        sort = dice.choices((Sort.PLAIN, Sort.ACKS, Sort.KEPT), (3, 4, 3))[0]
        is_named = sort is Sort.KEPT
        name = f"user{n:05d}/{node + 1}" if is_named else f"anonymous/-{node * 1_000_000 + n + 1}"
        people.append(Receiver(name, sort))
    topics = ("orders", "chat", "quotes", "alerts")
    names = [f"/{topics[n % 4]}/eu/{n}" for n in range(channels)]
    sizes = [min(int(dice.paretovariate(0.9)) + 1, 300, receivers) for _ in names]
    return Town(
        channels=names,
        weights=list(accumulate(_weights(channels, size.busiest))),
        subscribers=[dice.sample(people, number) for number in sizes],
        receivers=people,
        senders=[f"client/service{n}/1" for n in range(20)],
    )


def _weights(channels: int, busiest: float | None) -> list[float]:
    weights = [1 / (n + 1) for n in range(channels)]
    if busiest is not None:
        weights[0] = busiest / (1 - busiest) * sum(weights[1:])
    return weights


class Life:
    """The events of one node.

    Args:
        write: Gets each frame.
        step_us: The time from one turn to the next.
    """

    def __init__(
        self,
        node: str,
        town: Town,
        dice: random.Random,
        write: Callable[[bytes], None],
        step_us: int,
    ) -> None:
        self._town = town
        self._dice = dice
        self._write = write
        self._step_us = step_us
        self._builder = FrameBuilder(node)
        self._turn = 0
        self._now = BEGINNING
        self._last_id = 0
        # Future events by the turn that they come before, each with its exact time.
        self._ahead: dict[int, list[tuple[int, Callable[..., None], tuple[object, ...]]]] = {}
        self._books_due = BEGINNING + _BOOKS_US
        self.frames = 0
        # Events by kind, dead letters by code, and copies: all of them, and those in flight.
        self.kinds: Counter[str] = Counter()
        self.codes: Counter[str] = Counter()
        self.copies = self.in_flight = 0

    def run(self, events: int) -> None:
        """Generate this number of events."""
        self._change(Kind.NODE, "start")
        self._flush()
        self._change(Kind.BOOKS, "restored", number=0)
        for receiver in self._town.receivers:
            self._change(Kind.SESSION, "opened", name=receiver.name)
        while self.kinds.total() < events:
            self._live()
        self._report_books()
        self._change(Kind.NODE, "stop")
        self._flush()

    @property
    def settled(self) -> int:
        kinds = self.kinds
        return sum(
            kinds[kind]
            for kind in (Kind.ACKED, Kind.WRITTEN, Kind.DEAD, Kind.EXPIRED, Kind.DISCARDED)
        )

    def _live(self) -> None:
        self._turn += 1
        for due, happen, what in sorted(self._ahead.pop(self._turn, ()), key=_when):
            self._now = due
            happen(*what)
        self._now = BEGINNING + self._turn * self._step_us
        waiting: dict[Receiver, list[Message]] = {}
        for _ in range(self._dice.randint(1, 2 * _PUBLISHES - 1)):
            self._publish(waiting)
        self._now += self._dice.randint(50, 800)
        for receiver, messages in waiting.items():
            self._hand_over(receiver, messages)
        if self._builder.columns.weight >= _FULL:
            self._flush()
        if self._now >= self._books_due:
            self._report_books()

    def _flush(self) -> None:
        frame = self._builder.frame()
        if frame:
            self.frames += 1
            self._write(frame)

    # Messages

    def _publish(self, waiting: dict[Receiver, list[Message]]) -> None:
        dice, town = self._dice, self._town
        (place,) = dice.choices(range(len(town.channels)), cum_weights=town.weights)
        message = self._message(town.channels[place])
        receivers = town.subscribers[place]
        kept = sum([receiver.is_kept for receiver in receivers])
        self._builder.published(message, len(receivers), kept)
        self.kinds[Kind.PUBLISHED] += 1
        self.copies += len(receivers)
        if dice.random() < _POISON:
            for receiver in receivers:
                self._poison(receiver, message)
            return
        for receiver in receivers:
            waiting.setdefault(receiver, []).append(message)

    def _message(self, channel: str) -> Message:
        dice = self._dice
        received = self._now * 1000 + dice.randrange(1000)
        self._last_id = max(self._last_id + 1, received)
        message = Message(
            dice.choice(_WIRES),
            id=self._last_id,
            channel=channel,
            sender=dice.choice(self._town.senders),
        )
        if dice.random() < _URGENT:
            message.priority = 9
        return message

    def _hand_over(self, receiver: Receiver, messages: list[Message]) -> None:
        luck = self._dice.random()
        if luck < _EXPIRED + _OVERFLOW:
            kind = Kind.EXPIRED if luck < _EXPIRED else Kind.DISCARDED
            code = "" if luck < _EXPIRED else "resource.overflow.queue.entries"
            for message in messages:
                self._end(kind, receiver, message, code)
        elif receiver.sort is Sort.PLAIN:
            self._happen(Kind.WRITTEN, receiver, messages, 1)
        else:
            self._happen(Kind.HANDED, receiver, messages, 1)
            self.in_flight += len(messages)
            happens = self._ack if luck > _TROUBLE else self._trouble
            self._later(self._latency(), happens, receiver, messages)

    def _ack(self, receiver: Receiver, messages: list[Message]) -> None:
        self._happen(Kind.ACKED, receiver, messages)
        self.in_flight -= len(messages)

    # Failures

    def _trouble(self, receiver: Receiver, messages: list[Message], attempt: int = 1) -> None:
        """Let the receiver refuse the first message, lose contact, or hold back its queue."""
        luck = self._dice.random()
        if luck < 0.4:
            code = self._dice.choice(_REFUSALS)
            self._refuse(receiver, messages[0], code, attempt)
            self.in_flight -= 1
            self._end(Kind.DEAD, receiver, messages[0], code, attempt)
            self._happen(Kind.ACKED, receiver, messages[1:])
            self.in_flight -= len(messages) - 1
        elif luck < 0.8:
            self._lose(receiver, messages, attempt)
        else:
            self._hold(receiver, messages, attempt)

    def _lose(self, receiver: Receiver, messages: list[Message], attempt: int) -> None:
        for message in messages:
            self._refuse(receiver, message, _LOST, attempt)
        self._change(Kind.DISPATCHER, "polling", name=receiver.name)
        self.in_flight -= len(messages)
        if attempt >= 3:
            for message in messages:
                self._end(Kind.DEAD, receiver, message, _LOST, attempt)
            self._change(Kind.DISPATCHER, "dead", name=receiver.name)
            self._change(Kind.SESSION, "given_up", name=receiver.name)
        else:
            pause_us = self._dice.randrange(400_000, 10_000_000)
            self._later(pause_us, self._redeliver, receiver, messages, attempt + 1)

    def _redeliver(self, receiver: Receiver, messages: list[Message], attempt: int) -> None:
        self._change(Kind.DISPATCHER, "alive", name=receiver.name)
        self._happen(Kind.REDELIVERED, receiver, messages, attempt)
        self.in_flight += len(messages)
        if self._dice.random() < 0.7:
            self._later(self._latency(), self._ack, receiver, messages)
        else:
            self._later(self._latency(), self._trouble, receiver, messages, attempt)

    def _hold(self, receiver: Receiver, messages: list[Message], attempt: int) -> None:
        self._refuse(receiver, messages[0], "user.update.holdback", attempt)
        self._happen(Kind.RETURNED, receiver, messages)
        self.in_flight -= len(messages)
        self._change(Kind.HELD, "verdict", name=receiver.name)
        self._later(_HELD_US, self._release, receiver, messages, attempt + 1)

    def _release(self, receiver: Receiver, messages: list[Message], attempt: int) -> None:
        self._change(Kind.RELEASED, "operator", name=receiver.name)
        self._redeliver(receiver, messages, attempt)

    def _poison(self, receiver: Receiver, message: Message) -> None:
        """Let the receiver refuse a message, if it can."""
        if receiver.sort is Sort.PLAIN:
            self._happen(Kind.WRITTEN, receiver, [message], 1)
            return
        self._happen(Kind.HANDED, receiver, [message], 1)
        self._refuse(receiver, message, "user.update.internalError", 1)
        self._end(Kind.DEAD, receiver, message, "user.update.internalError", 1)

    # Journal events

    def _happen(
        self, kind: str, receiver: Receiver, messages: list[Message], attempt: int | None = None
    ) -> None:
        if receiver.is_kept:
            ids = [message.id for message in messages]
            self._builder.happened(kind, ids, receiver.name, self._now, attempt)
        else:
            self._builder.delivered(kind, messages, receiver.name, self._now, attempt)
        self.kinds[kind] += len(messages)

    def _refuse(self, receiver: Receiver, message: Message, code: str, attempt: int) -> None:
        self._builder.explained(Kind.REFUSED, message, receiver.name, self._now, attempt, code=code)
        self.kinds[Kind.REFUSED] += 1

    def _end(
        self, kind: str, receiver: Receiver, message: Message, code: str, attempt: int | None = None
    ) -> None:
        self.kinds[kind] += 1
        builder = self._builder
        if kind == Kind.DEAD:
            self.codes[code] += 1
            self._last_id += 1
            builder.explained(
                kind,
                message,
                receiver.name,
                self._now,
                attempt,
                code=code,
                letter=self._last_id,
                fingerprint=fingerprint(message.channel, code),
            )
            if self._dice.random() < 0.1:
                self._later(60_000_000, self._replay, receiver, message, self._last_id)
        elif code:
            builder.explained(kind, message, receiver.name, self._now, code=code)
        else:
            builder.delivered(kind, [message], receiver.name, self._now)

    def _replay(self, receiver: Receiver, message: Message, letter: int) -> None:
        self._builder.explained(
            Kind.REPLAYED, message, receiver.name, self._now, letter=letter, generation=1
        )
        self.kinds[Kind.REPLAYED] += 1
        self._happen(Kind.HANDED, receiver, [message], 1)
        self.in_flight += 1
        self._later(self._latency(), self._ack, receiver, [message])

    def _change(
        self, kind: str, what: str, *, name: str | None = None, number: int | None = None
    ) -> None:
        self._builder.changed(kind, self._now, what, name=name, number=number)
        self.kinds[kind] += 1

    def _report_books(self) -> None:
        self._books_due = self._now + _BOOKS_US
        self._flush()
        for what, number in self._builder.books().items():
            self._change(Kind.BOOKS, what, number=number)
        self._flush()

    # Time

    def _latency(self) -> int:
        return int(self._dice.lognormvariate(0, 1) * _LATENCY_US)

    def _later(self, after_us: int, happen: Callable[..., None], *what: object) -> None:
        due = self._now + after_us
        turn = max((due - BEGINNING) // self._step_us + 1, self._turn + 1)
        self._ahead.setdefault(turn, []).append((due, happen, what))


def _when(happening: tuple[int, Callable[..., None], tuple[object, ...]]) -> int:
    return happening[0]
