"""The journal of one node as it is generated: events, their totals, and time.

Events of durable sessions come as from the store's scripts, which know messages by their ids.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from enum import Enum

from holdfast.delivery.basics.steps import ARRIVALS
from holdfast.delivery.letters.dead import fingerprint
from holdfast.delivery.messages.former_attempts import FormerAttempts, tried
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.outcomes import Move
from holdfast.delivery.shared_queues.delays import KEY
from holdfast.journal import notes
from holdfast.journal.builder import FrameBuilder
from holdfast.journal.columns import FailureDetails
from holdfast.journal.schema import BOOKS_S, Kind
from holdfast.pipeline.copies import LAST_ENDS

_BOOKS_US = int(BOOKS_S * 1e6)
# Rows of a frame.
_FULL = 2000
# 2025-11-20 00:00 UTC.
BEGINNING = 1_763_596_800_000_000
_LATENCY_US = 13_000
_URGENT = 0.05
_REPLAYED = 0.1
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


class Diary:
    """The events of one node.

    Args:
        senders: The publishers.
        write: Gets each frame.
        step_us: The time from one turn to the next.
    """

    def __init__(
        self,
        node: str,
        senders: Sequence[str],
        dice: random.Random,
        write: Callable[[bytes], None],
        step_us: int,
    ) -> None:
        self.dice = dice
        self._senders = senders
        self._write = write
        self._step_us = step_us
        self.builder = FrameBuilder(node)
        self._turn = 0
        self.now = BEGINNING
        self._last_id = 0
        # Future events by the turn that they come before, each with its exact time.
        self._ahead: dict[int, list[tuple[int, Callable[..., None], tuple[object, ...]]]] = {}
        self._books_due = BEGINNING + _BOOKS_US
        self.frames = 0
        # Events by kind, dead letters by code, and copies: all of them, and those in flight.
        self.kinds: Counter[str] = Counter()
        self.codes: Counter[str] = Counter()
        self.copies = self.in_flight = 0

    @property
    def settled(self) -> int:
        return sum(self.kinds[kind] for kind in LAST_ENDS)

    def begin_turn(self) -> None:
        """Let everything happen that was due before the turn."""
        self._turn += 1
        for due, happen, what in sorted(self._ahead.pop(self._turn, ()), key=_when):
            self.now = due
            happen(*what)
        self.now = BEGINNING + self._turn * self._step_us

    def end_turn(self) -> None:
        """Write what is due."""
        if self.builder.columns.weight >= _FULL:
            self.flush()
        if self.now >= self._books_due:
            self.report_books()

    def flush(self) -> None:
        frame = self.builder.frame()
        if frame:
            self.frames += 1
            self._write(frame)

    # Messages

    def publish(self, channel: str, receivers: Sequence[Receiver]) -> Message:
        message = self.message(channel)
        kept = sum([receiver.is_kept for receiver in receivers])
        self.builder.published(message, len(receivers), kept)
        self.kinds[Kind.PUBLISHED] += 1
        self.copies += len(receivers)
        return message

    def message(self, channel: str) -> Message:
        dice = self.dice
        received = self.now * 1000 + dice.randrange(1000)
        self._last_id = max(self._last_id + 1, received)
        message = Message(
            dice.choice(_WIRES),
            id=self._last_id,
            channel=channel,
            sender=dice.choice(self._senders),
        )
        if dice.random() < _URGENT:
            message.priority = 9
        return message

    def hand(self, receiver: Receiver, messages: list[Message], attempt: int = 1) -> None:
        kind = Kind.HANDED if attempt == 1 else Kind.REDELIVERED
        self.happen(kind, receiver, messages, attempt)
        self.in_flight += len(messages)

    def ack(self, receiver: Receiver, messages: list[Message]) -> None:
        self.happen(Kind.ACKED, receiver, messages)
        self.in_flight -= len(messages)

    def move(self, message: Message, source: Receiver, target: Receiver, attempts: int = 0) -> None:
        """Move a copy to another queue, with the attempts that it had."""
        if attempts:
            message = tried(message, FormerAttempts(attempts, 0, (), True))
        move = Move(message, source.name, [target.name], 1, 1)
        self.builder.add_note(notes.moved([move], self.now))
        self.kinds[Kind.MOVED] += 1
        self.kinds[Kind.ENTERED] += 1

    def delay(self, channel: str) -> Message:
        """Let a message wait until it is due."""
        message = self.message(channel)
        message.is_durable = True
        self.builder.add_note(notes.arrived(ARRIVALS[KEY], [message], self.now))
        self.kinds[Kind.PUBLISHED] += 1
        self.kinds[Kind.DELAYED] += 1
        self.copies += 1
        return message

    # Journal events

    def happen(
        self, kind: str, receiver: Receiver, messages: list[Message], attempt: int | None = None
    ) -> None:
        if receiver.is_kept:
            ids = [message.id for message in messages]
            self.builder.happened(kind, ids, receiver.name, self.now, attempt)
        else:
            self.builder.delivered(kind, messages, receiver.name, self.now, attempt)
        self.kinds[kind] += len(messages)

    def refuse(self, receiver: Receiver, message: Message, code: str, attempt: int) -> None:
        self.builder.explained(Kind.REFUSED, message, receiver.name, self.now, attempt, code=code)
        self.kinds[Kind.REFUSED] += 1

    def end(
        self, kind: str, receiver: Receiver, message: Message, code: str, attempt: int | None = None
    ) -> None:
        self.kinds[kind] += 1
        builder = self.builder
        if kind == Kind.DEAD:
            self.codes[code] += 1
            self._last_id += 1
            builder.explained(
                kind,
                message,
                receiver.name,
                self.now,
                attempt,
                code=code,
                letter=self._last_id,
                fingerprint=fingerprint(message.channel, code),
            )
            if self.dice.random() < _REPLAYED:
                self.later(60_000_000, self.replay, receiver, message, self._last_id)
        elif code:
            builder.explained(kind, message, receiver.name, self.now, code=code)
        else:
            builder.delivered(kind, [message], receiver.name, self.now)

    def replay(self, receiver: Receiver, message: Message, letter: int) -> None:
        why = FailureDetails(letter=letter, generation=1, kept=int(receiver.is_kept))
        self.builder.explained(Kind.REPLAYED, message, receiver.name, self.now, **why)
        self.kinds[Kind.REPLAYED] += 1
        self.hand(receiver, [message])
        self.later(self.latency(), self.ack, receiver, [message])

    def change(
        self,
        kind: str,
        what: str,
        *,
        name: str | None = None,
        channel: str | None = None,
        number: int | None = None,
    ) -> None:
        self.builder.changed(kind, self.now, what, name=name, channel=channel, number=number)
        self.kinds[kind] += 1

    def report_books(self) -> None:
        self._books_due = self.now + _BOOKS_US
        self.flush()
        for what, number in self.builder.books().items():
            self.change(Kind.BOOKS, what, number=number)
        self.flush()

    # Time

    def latency(self) -> int:
        return int(self.dice.lognormvariate(0, 1) * _LATENCY_US)

    def later(self, after_us: int, happen: Callable[..., None], *what: object) -> None:
        due = self.now + after_us
        turn = max((due - BEGINNING) // self._step_us + 1, self._turn + 1)
        self._ahead.setdefault(turn, []).append((due, happen, what))


def _when(happening: tuple[int, Callable[..., None], tuple[object, ...]]) -> int:
    return happening[0]
