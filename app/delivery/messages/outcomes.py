"""How entries leave their queues, for the store and the journal: for good, or for other queues."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from holdfast.delivery.basics.counters import Reason

if TYPE_CHECKING:
    from holdfast.delivery.messages.message import Message


class Way(Enum):
    """The ways out of a queue. A dead entry leaves with its letter, by `StorePort.dead_letter`."""

    # The receiver has the message, by its own word or by its terms.
    ACKED = "acked"
    # The message's lifetime is over.
    EXPIRED = "expired"
    # Dropped without a dead letter, as agreed.
    DISCARDED = "discarded"
    # The store refused to keep it after all: there never was an entry.
    NEVER_KEPT = "never kept"


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """A way out, with the reason of a discard; each outcome is one object."""

    way: Way
    reason: Reason | None = None


ACKED = Outcome(Way.ACKED)
EXPIRED = Outcome(Way.EXPIRED)
NEVER_KEPT = Outcome(Way.NEVER_KEPT)
DISCARDED = {reason: Outcome(Way.DISCARDED, reason) for reason in Reason}


class Move(NamedTuple):
    """One message leaves one queue for others."""

    message: "Message"
    # The receiver whose queue it leaves, and those whose queues have it afterwards.
    source: str
    targets: Sequence[str]
    # How many of the targets, the first ones, did not have it before.
    copies: int
    # How many of the targets, the first ones, remember the attempts that the message brings along.
    remembering: int
