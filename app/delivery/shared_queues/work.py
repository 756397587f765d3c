"""Messages of work queues: which receivers refused each, and which shard has it."""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from holdfast.delivery.basics.error_codes import ErrorCode
from holdfast.delivery.basics.feature_records import record_of, with_record
from holdfast.delivery.messages.message import Message, MessageRecord
from holdfast.delivery.queues.receivers import Receiver

# Names of work queues are this prefix and the channel. No subject begins with it.
PREFIX: Final = "work:"
# A message with this many refusals becomes a dead letter, even if other receivers would accept it.
MOST_REFUSALS: Final = 10


class WorkRefusal(NamedTuple):
    """A receiver's refusal of a message of a work queue. Other receivers may accept it."""

    # The `key` of the receiver.
    key: str
    code: ErrorCode
    text: str
    # Whether no other receiver is to get the message.
    is_final: bool = False


class _Work(MessageRecord):
    """The record of a message of a work queue. Copies of the message share it."""

    __slots__ = ("refusals",)

    def __init__(self, refusals: Sequence[WorkRefusal] = ()) -> None:
        self.refusals = refusals


def is_work(message: Message) -> bool:
    """Whether the message belongs to a work queue."""
    return record_of(message.records, _Work) is not None


def refusals_of(message: Message) -> Sequence[WorkRefusal]:
    """Return the refusals of the message, oldest first."""
    work = record_of(message.records, _Work)
    return () if work is None else work.refusals


def is_given_up(message: Message) -> bool:
    """Whether the last refusal is final: the message becomes a dead letter of its queue."""
    refusals = refusals_of(message)
    return bool(refusals) and refusals[-1].is_final


def is_refused_by(message: Message, takers: Sequence[Receiver]) -> bool:
    """Whether all live receivers refused the message, or enough of them to blame the message."""
    refusals = refusals_of(message)
    if not refusals:
        return False
    if len(refusals) >= MOST_REFUSALS:
        return True
    refusers = {each.key for each in refusals}
    return all(each.key in refusers for each in takers)


def make_work(message: Message, refusals: Sequence[WorkRefusal] = ()) -> None:
    """Let the message belong to the work queue of its channel, with these refusals."""
    message.records = with_record(message.records, _Work(refusals))


class Borrower(Protocol):
    """Tells the shard of the work."""

    def left(self, borrowed: "Borrowed", /) -> None:
        """Take note that no queue has the copy any more."""
        ...


class Borrowed(MessageRecord):
    """The record of a copy of work that belongs to another shard, which has its entry.

    The copy is never stored. Its shard hears when it has left the queues of sessions here.
    """

    __slots__ = ("borrower", "home", "is_over", "loan_id", "queues")

    def __init__(self, home: int, loan_id: int) -> None:
        # The shard of the work, and what it calls this loan.
        self.home = home
        self.loan_id = loan_id
        # None as long as sessions are restored.
        self.borrower: Borrower | None = None
        # How many queues have the copy: one or none.
        self.queues = 0
        # Whether its shard was told, or has told, what became of it.
        self.is_over = False

    def counts_queues(self) -> bool:
        return True

    def entered_queues(self, count: int) -> None:
        self.queues += count

    def left_queues(self, count: int) -> None:
        self.queues -= count
        if self.queues <= 0 and self.borrower is not None:
            self.borrower.left(self)

    def mark(self, message: Message) -> None:
        """Let the message be such a copy."""
        message.records = with_record(message.records, self)


def borrowed_of(message: Message) -> Borrowed | None:
    """Return the message's record, or None if it belongs to this shard."""
    return record_of(message.records, Borrowed)
