"""Letters between shards: what one of them asks another to do. They are not dead letters."""

from typing import NamedTuple

from holdfast.delivery.basics.feature_records import record_of, with_record
from holdfast.delivery.messages.message import Message, MessageRecord


class ShardLetter(NamedTuple):
    """What another shard asks this one to do, in the inbox of this shard's store."""

    # The shard that asks, and what it calls the letter.
    sender: int
    id: int
    # The name in the inbox.
    name: str
    what: str
    data: bytes


class Effect(MessageRecord):
    """The record of a message that a letter asked for.

    The call that first stores the message also appends the answer to the log and forgets the
    letter. A repeat, which only the store recognises, does neither.
    """

    __slots__ = ("answer", "is_confirmed", "is_framed", "letter")

    def __init__(self, letter: ShardLetter, answer: bytes) -> None:
        self.letter = letter
        self.answer = answer
        # Whether a call with the answer was made; and whether replicas have what it stored.
        self.is_framed = self.is_confirmed = False

    def is_of_copies(self) -> bool:
        # The letter is answered by the original.
        return False

    def mark(self, message: Message) -> None:
        """Let the message be the effect."""
        message.records = with_record(message.records, self)


def effect_of(message: Message) -> Effect | None:
    """Return the message's record, or None if no letter asked for it."""
    return record_of(message.records, Effect)
