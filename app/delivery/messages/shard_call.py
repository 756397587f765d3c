"""What another shard has called, and the message that is the effect of it."""

from typing import Final, NamedTuple

from holdfast.delivery.basics.feature_records import record_of, with_record
from holdfast.delivery.messages.message import Message, MessageRecord

# An answer that no sender can read: the call could not be done.
NO_ANSWER: Final = b"{}"


class ShardCall(NamedTuple):
    """What another shard asks this one to do: a call, which the store of this shard has."""

    # The shard that asks, and what it calls this.
    sender: int
    id: int
    # The name under which the store has it.
    name: str
    what: str
    data: bytes


class Effect(MessageRecord):
    """The record of a message that a call asked for.

    The script that first stores the message also appends the answer to the log and forgets the
    call. A repeat, which only the store recognises, does neither.
    """

    __slots__ = ("answer", "call", "is_confirmed", "is_framed")

    def __init__(self, call: ShardCall, answer: bytes) -> None:
        self.call = call
        self.answer = answer
        # Whether a script with the answer was sent; and whether replicas have what it stored.
        self.is_framed = self.is_confirmed = False

    def is_of_copies(self) -> bool:
        # The call is answered by the original.
        return False

    def mark(self, message: Message) -> None:
        """Let the message be the effect."""
        message.records = with_record(message.records, self)


def effect_of(message: Message) -> Effect | None:
    """Return the message's record, or None if no call asked for it."""
    return record_of(message.records, Effect)
