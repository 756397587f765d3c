"""What a program knows of its messages, from what it sent and received alone.

A copy is one message for one receiver. It stays in the queue of one receiver at a time, where it is
handed over and refused, and has at most one end.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from holdfast.journal.wording import wording_of

# The server may note a moment a little earlier or later: acks may wait 50 ms to be written.
_BEFORE_US, _AFTER_US = 2000, 300_000
# How long acks may wait to be written.
_UNWRITTEN_US = 100_000


class End(StrEnum):
    """How a copy ended, in the words of the tables."""

    ACKED = "acked"
    WRITTEN = "written"
    DEAD = "dead"
    EXPIRED = "expired"
    DISCARDED = "discarded"
    LOST = "lost_with_process"


_BY_VERDICT = (End.ACKED, End.DEAD)


class Span(NamedTuple):
    """The time between a request and its response, in microseconds since 1970."""

    since_us: int
    until_us: int

    @classmethod
    def at(cls, us: int) -> "Span":
        """Return an exact moment."""
        return cls(us, us)

    @property
    def us(self) -> int:
        """The exact moment, which has to be known."""
        assert self.since_us == self.until_us, self
        return self.since_us

    def __contains__(self, us: object) -> bool:
        return isinstance(us, int) and self.since_us <= us <= self.until_us


def now_us() -> int:
    return time.time_ns() // 1000


def until_now(since_us: int) -> Span:
    return Span(since_us - _BEFORE_US, now_us() + _AFTER_US)


@dataclass(slots=True)
class Message:
    """One publish; the time of its receipt is its id, in nanoseconds."""

    id: int
    channel: str
    sender: str | None
    is_durable: bool
    # The size of its event in bytes.
    size: int
    sent: Span


class Failure(NamedTuple):
    """A refusal of one copy, or what it died of."""

    code: str
    wording: str | None
    span: Span


@dataclass(slots=True)
class Stay:
    """The time of a copy in one queue."""

    receiver: str
    hand_overs: list[Span] = field(default_factory=list)
    refusals: list[Failure] = field(default_factory=list)
    # The number of hand-overs before.
    former: int = 0
    # Whether the server may have been killed before the store noted the last hand-over.
    is_unsure: bool = False


@dataclass(slots=True)
class Copy:
    """One message for one receiver, which may be that of a shared queue for a while."""

    message: Message
    stays: list[Stay]
    generation: int = 0
    end: End | None = None
    ended: Span | None = None
    death: Failure | None = None
    refused_by: set[str] = field(default_factory=set)
    # When it began as a replay of a letter, and whether it is a letter that was replayed.
    replayed: Span | None = None
    is_replayed: bool = False

    @property
    def stay(self) -> Stay:
        return self.stays[-1]

    @property
    def receiver(self) -> str:
        return self.stay.receiver

    @property
    def moves(self) -> int:
        """How often it left a receiver, but not a work queue, for another queue."""
        return sum(not stay.receiver.startswith("work:") for stay in self.stays[:-1])

    @property
    def first_hand_over(self) -> Span:
        return next(stay.hand_overs[0] for stay in self.stays if stay.hand_overs)

    @property
    def attempts(self) -> int:
        return self.stay.former + len(self.stay.hand_overs)

    def move(self, receiver: str) -> None:
        self.stays.append(Stay(receiver, former=self.attempts))

    def hand(self, span: Span) -> None:
        self.stay.hand_overs.append(span)

    def refuse(self, code: str, text: str, span: Span) -> None:
        self.stay.refusals.append(Failure(code, wording_of(text), span))
        self.refused_by.add(self.receiver)

    def settle(self, end: End, span: Span) -> None:
        assert self.end is None, (self, end)
        self.end, self.ended = end, span

    def look_again(self, *, is_flagged: bool) -> None:
        """Believe the flag of a copy that comes again after a kill."""
        if self.stay.is_unsure and not is_flagged:
            since_us = self.stay.hand_overs.pop().until_us
            # Nor did a verdict on it count.
            self.stay.refusals = [
                each for each in self.stay.refusals if each.span.until_us < since_us
            ]
        self.stay.is_unsure = False

    def confirm(self, span: Span) -> None:
        """Note that an ack may have counted later."""
        if self.ended is not None:
            self.ended = Span(self.ended.since_us, span.until_us)

    def reopen(self, since_us: int) -> None:
        """Forget an end of which the server did not learn before it was killed."""
        self.end = self.ended = self.death = None
        self.stay.refusals = [each for each in self.stay.refusals if each.span.until_us < since_us]

    def die(self, code: str, text: str, span: Span) -> None:
        self.settle(End.DEAD, span)
        self.death = Failure(code, wording_of(text), span)


class Contact(NamedTuple):
    """A change of a session that counts as a loss of contact."""

    receiver: str
    what: str
    span: Span
    # Whether the journal must have it: a killed server forgets the last ones.
    is_sure: bool = True
    # Whether a kill of the server had ended the connection before.
    is_of_server: bool = False


class Step(NamedTuple):
    """What became of a request or a reply, by the channel that was asked."""

    channel: str | None
    what: str
    span: Span
    # The time since the request, if that is known.
    took: Span | None = None


class Refusal(NamedTuple):
    """A publish that the server refused."""

    reason: str
    # None if there can be no such channel.
    channel: str | None
    span: Span


class Noted(NamedTuple):
    """A number of such publishes, and when the server wrote it down."""

    reason: str
    channel: str | None
    number: int
    us: int


class Ledger:
    """The books of one run."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.copies: list[Copy] = []
        self.contacts: list[Contact] = []
        self.steps: list[Step] = []
        self.refused: list[Refusal] = []
        # Known at the end: what was written of these, and the times of all events about messages.
        self.noted: list[Noted] = []
        self.about_messages_us: list[int] = []
        self.last_kill_us = self.written_us = 0
        # What ids of messages begin with.
        self.origin = ""

    def publish(self, message: Message, receivers: list[str]) -> list[Copy]:
        self.messages.append(message)
        copies = [Copy(message, [Stay(receiver)]) for receiver in receivers]
        self.copies += copies
        return copies

    def open(self, receiver: str) -> list[Copy]:
        """The copies in a queue."""
        return [copy for copy in self.copies if copy.end is None and copy.receiver == receiver]

    def find(self, receiver: str, id: int) -> Copy | None:
        return next((copy for copy in self.open(receiver) if copy.message.id == id), None)

    def acked_lately(self, receiver: str, since_us: int) -> list[Copy]:
        """The copies that were acked so late that the store may not know it."""
        acked = (copy for copy in self.copies if copy.end is End.ACKED)
        return [
            copy
            for copy in acked
            if copy.receiver == receiver and copy.ended and copy.ended.until_us > since_us
        ]

    def forget_the_last(self) -> None:
        """Note what a killed server may not have written down."""
        self.contacts = [
            each._replace(is_sure=each.is_sure and each.span.since_us < self.written_us)
            for each in self.contacts
        ]

    def reopen(self, receiver: str, id: int) -> Copy | None:
        """Reopen a copy that ended around the last kill; none if no such copy did."""
        since_us = self.last_kill_us - _UNWRITTEN_US
        for copy in self.copies:
            is_it = (copy.message.id, copy.receiver) == (id, receiver) and copy.end in _BY_VERDICT
            if is_it and copy.ended is not None and copy.ended.until_us > since_us:
                copy.reopen(since_us)
                return copy
        return None

    def dead(self) -> Iterator[Copy]:
        return (copy for copy in self.copies if copy.end is End.DEAD)
