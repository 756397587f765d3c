"""Generates the life of a town: publishes, and the outcome of every copy."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate, cycle

from bench.journal.diary import Diary, Receiver, Sort
from bench.journal.errands import REFUSALS, errands
from holdfast.delivery.messages.message import Message
from holdfast.journal.schema import Kind

# The average number of publishes in one turn of the event loop, and the part of turns with another
# kind of traffic, too.
_PUBLISHES = 4
_ERRANDS = 0.1

_TROUBLE = 0.02
_POISON = 0.0005
_EXPIRED = 0.0005
_OVERFLOW = 0.0003
_HELD_US = 30_000_000
_LOST = "communication.noConnection"


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


class Life(Diary):
    """The life of a town.

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
        super().__init__(node, town.senders, dice, write, step_us)
        self._town = town
        self._errands = cycle(errands(self))

    def run(self, events: int) -> None:
        """Generate this number of events."""
        self.change(Kind.NODE, "start")
        self.flush()
        self.change(Kind.BOOKS, "restored", number=0)
        for receiver in self._town.receivers:
            self.change(Kind.SESSION, "opened", name=receiver.name)
        while self.kinds.total() < events:
            self._live()
        self.report_books()
        self.change(Kind.NODE, "stop")
        self.flush()

    def _live(self) -> None:
        self.begin_turn()
        waiting: dict[Receiver, list[Message]] = {}
        for _ in range(self.dice.randint(1, 2 * _PUBLISHES - 1)):
            self._publish(waiting)
        self.now += self.dice.randint(50, 800)
        for receiver, messages in waiting.items():
            self._hand_over(receiver, messages)
        if self.dice.random() < _ERRANDS:
            next(self._errands)()
        self.end_turn()

    # Messages

    def _publish(self, waiting: dict[Receiver, list[Message]]) -> None:
        dice, town = self.dice, self._town
        (place,) = dice.choices(range(len(town.channels)), cum_weights=town.weights)
        receivers = town.subscribers[place]
        message = self.publish(town.channels[place], receivers)
        if dice.random() < _POISON:
            for receiver in receivers:
                self._poison(receiver, message)
            return
        for receiver in receivers:
            waiting.setdefault(receiver, []).append(message)

    def _hand_over(self, receiver: Receiver, messages: list[Message]) -> None:
        luck = self.dice.random()
        if luck < _EXPIRED + _OVERFLOW:
            kind = Kind.EXPIRED if luck < _EXPIRED else Kind.DISCARDED
            code = "" if luck < _EXPIRED else "resource.overflow.queue.entries"
            for message in messages:
                self.end(kind, receiver, message, code)
        elif receiver.sort is Sort.PLAIN:
            self.happen(Kind.WRITTEN, receiver, messages, 1)
        else:
            self.hand(receiver, messages)
            happens = self.ack if luck > _TROUBLE else self._trouble
            self.later(self.latency(), happens, receiver, messages)

    # Failures

    def _trouble(self, receiver: Receiver, messages: list[Message], attempt: int = 1) -> None:
        """Let the receiver refuse the first message, lose contact, or hold back its queue."""
        luck = self.dice.random()
        if luck < 0.4:
            code = self.dice.choice(REFUSALS)
            self.refuse(receiver, messages[0], code, attempt)
            self.in_flight -= 1
            self.end(Kind.DEAD, receiver, messages[0], code, attempt)
            self.happen(Kind.ACKED, receiver, messages[1:])
            self.in_flight -= len(messages) - 1
        elif luck < 0.8:
            self._lose(receiver, messages, attempt)
        else:
            self._hold(receiver, messages, attempt)

    def _lose(self, receiver: Receiver, messages: list[Message], attempt: int) -> None:
        for message in messages:
            self.refuse(receiver, message, _LOST, attempt)
        self.change(Kind.DISPATCHER, "polling", name=receiver.name)
        self.in_flight -= len(messages)
        if attempt >= 3:
            for message in messages:
                self.end(Kind.DEAD, receiver, message, _LOST, attempt)
            self.change(Kind.DISPATCHER, "dead", name=receiver.name)
            self.change(Kind.SESSION, "given_up", name=receiver.name)
        else:
            pause_us = self.dice.randrange(400_000, 10_000_000)
            self.later(pause_us, self._redeliver, receiver, messages, attempt + 1)

    def _redeliver(self, receiver: Receiver, messages: list[Message], attempt: int) -> None:
        self.change(Kind.DISPATCHER, "alive", name=receiver.name)
        self.hand(receiver, messages, attempt)
        if self.dice.random() < 0.7:
            self.later(self.latency(), self.ack, receiver, messages)
        else:
            self.later(self.latency(), self._trouble, receiver, messages, attempt)

    def _hold(self, receiver: Receiver, messages: list[Message], attempt: int) -> None:
        self.refuse(receiver, messages[0], "user.update.holdback", attempt)
        self.happen(Kind.RETURNED, receiver, messages)
        self.in_flight -= len(messages)
        self.change(Kind.HELD, "verdict", name=receiver.name)
        self.later(_HELD_US, self._release, receiver, messages, attempt + 1)

    def _release(self, receiver: Receiver, messages: list[Message], attempt: int) -> None:
        self.change(Kind.RELEASED, "operator", name=receiver.name)
        self._redeliver(receiver, messages, attempt)

    def _poison(self, receiver: Receiver, message: Message) -> None:
        """Let the receiver refuse a message, if it can."""
        if receiver.sort is Sort.PLAIN:
            self.happen(Kind.WRITTEN, receiver, [message], 1)
            return
        self.happen(Kind.HANDED, receiver, [message], 1)
        self.refuse(receiver, message, "user.update.internalError", 1)
        self.end(Kind.DEAD, receiver, message, "user.update.internalError", 1)
