"""How entries leave their queues, settled or for other queues, for the store and the journal."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from holdfast.delivery.basics.counters import Reason

if TYPE_CHECKING:
    from holdfast.delivery.messages.message import Message


class OutcomeKind(Enum):
    """How an entry leaves a queue. Dead entries leave by `StorePort.dead_letter` instead."""

    # The receiver confirmed it, or its terms count it as confirmed.
    ACKED = "acked"
    # The message's lifetime ended.
    EXPIRED = "expired"
    # Dropped without a dead letter, as the receiver's terms say.
    DISCARDED = "discarded"
    # Its delay was over, and it was published as another message.
    DUE = "due"


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """An outcome, with its reason if the entry was discarded. Compared by identity."""

    kind: OutcomeKind
    reason: Reason | None = None


ACKED = Outcome(OutcomeKind.ACKED)
EXPIRED = Outcome(OutcomeKind.EXPIRED)
DUE = Outcome(OutcomeKind.DUE)
DISCARDED = {reason: Outcome(OutcomeKind.DISCARDED, reason) for reason in Reason}


class Move(NamedTuple):
    """One message leaves one queue and enters others."""

    message: "Message"
    # The receiver whose queue it leaves, and the receivers whose queues have it afterwards.
    source: str
    targets: Sequence[str]
    # How many of the targets, counted from the first, did not have it before.
    copies: int
    # How many of the targets, counted from the first, adopt the attempts that the message brings.
    remembering: int
