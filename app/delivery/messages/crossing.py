"""Which messages cross to other shards, and how.

Stored messages are appended to the log by the calls that store them, all others when they are
shown. A message that is not stored, and waits for a stored one before it, would be overtaken by
the next stored one of its channel: so the call that stores that one appends both. If that one has a
publish key, a call before it does, because a repeat appends nothing. If it waits no longer, because
the store does not answer, it is also passed on at once: other shards get it twice, and drop one.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Protocol

from holdfast.delivery.basics.feature_records import record_of, with_record
from holdfast.delivery.messages.message import Message, MessageRecord
from holdfast.delivery.messages.shard_call import effect_of
from holdfast.delivery.messages.storing import PersistOutcome

Answered = Callable[[PersistOutcome], None]


class Crossing(MessageRecord):
    """The record of a message that other shards get by a call that stores messages."""

    __slots__ = ("before", "is_framed")

    def __init__(self) -> None:
        # Messages that are not stored, and that are to be appended before this one.
        self.before: Sequence[Message] = ()
        # Whether a frame has it already.
        self.is_framed = False

    def is_of_copies(self) -> bool:
        # The others have the original.
        return False

    def take_before(self) -> Sequence[Message]:
        """Return the messages before this one, which another call appends."""
        before, self.before = self.before, ()
        return before

    @classmethod
    def add_to(cls, message: Message) -> "Crossing":
        """Let such a call append the message."""
        crossing = cls()
        message.records = with_record(message.records, crossing)
        return crossing


class Spared(MessageRecord):
    """The record of a message that some sessions of other shards have already, by their keys."""

    __slots__ = ("keys",)

    def __init__(self, keys: Iterable[str]) -> None:
        self.keys = frozenset(keys)

    def is_of_copies(self) -> bool:
        return False

    def mark(self, message: Message) -> None:
        """Let the message pass over these sessions."""
        message.records = with_record(message.records, self)


def spared_by(message: Message) -> Collection[str]:
    """Return the keys of sessions of other shards that have the message already."""
    spared = record_of(message.records, Spared)
    return () if spared is None else spared.keys


def crossing_of(message: Message) -> Crossing | None:
    """Return the message's record, or None if no such call appends it."""
    return record_of(message.records, Crossing)


def needs_frame(message: Message) -> bool:
    """Return whether the call that stores the message has to append something for other shards.

    That is the message, or the answer to the call that asked for it.
    """
    if message.records is None:
        return False
    crossing, effect = crossing_of(message), effect_of(message)
    return (crossing is not None and not crossing.is_framed) or (
        effect is not None and not effect.is_framed
    )


class CrossingPort(Protocol):
    """The other shards, as messages on their way see them."""

    def pass_on(self, message: Message, /, *, is_early: bool = False) -> None:
        """Pass on a message that is not stored, and that may not have waited for one before it."""
        ...


class Crossings:
    """Lets messages cross to the other shards, for the hub."""

    def __init__(self, others: CrossingPort) -> None:
        self._others = others

    def when_stored(
        self, message: Message, waiting: Iterable[Message], answered: Answered
    ) -> Answered:
        """Let the call that stores the message append it. Returns what hears the store's answer.

        Args:
            waiting: What crosses of its channel and is not shown yet, in order.
        """
        crossing = Crossing.add_to(message)
        before = [each for each in waiting if crossing_of(each) is None]
        for each in before:
            Crossing.add_to(each)
        if not before:
            return answered
        crossing.before = before
        return partial(self._answered, crossing, answered)

    def shown(self, message: Message, *, is_early: bool) -> None:
        """Pass the message on, unless a call that stores messages does so.

        Args:
            is_early: Whether it did not wait any longer for the store.
        """
        if crossing_of(message) is None or (is_early and not message.is_durable):
            self._others.pass_on(message, is_early=is_early)
        for record in message.records or ():
            record.crossed()

    def _answered(self, crossing: Crossing, answered: Answered, outcome: PersistOutcome) -> None:
        if outcome is PersistOutcome.REFUSED or outcome is PersistOutcome.REPEATED:
            # The call has appended nothing.
            for each in crossing.take_before():
                self._others.pass_on(each)
        answered(outcome)
