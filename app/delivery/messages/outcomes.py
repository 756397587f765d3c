"""How entries leave their queues, settled or for other queues, for the store and the journal."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from holdfast.delivery.basics.counters import ENDS
from holdfast.delivery.basics.steps import STEPS, Reason, Step, StepKind

if TYPE_CHECKING:
    from holdfast.delivery.messages.message import Message


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """How an entry leaves a queue, with the reason if it was discarded. Compared by identity.

    Dead entries leave by `StorePort.dead_letter` instead.
    """

    # A step of the table.
    kind: str
    # The place of its counter.
    counter: int
    reason: Reason | None = None


def _outcome(step: Step, reason: Reason | None = None) -> Outcome:
    return Outcome(step.kind, ENDS.index(step.books[0]), reason)


# By the kind of the step.
OUTCOMES = {step.kind: _outcome(step) for step in STEPS if step.is_end}
ACKED = OUTCOMES[StepKind.ACKED]
EXPIRED = OUTCOMES[StepKind.EXPIRED]
DISCARDED = {
    reason: _outcome(step, reason)
    for step in STEPS
    if step.kind == StepKind.DISCARDED
    for reason in Reason
}


class Lending(Enum):
    """How work moves between its queue and a session of another shard."""

    __hash__ = object.__hash__

    LENT = "lent"
    GIVEN_BACK = "given back"
    # The other shard says nothing of it any more: the session may have done it.
    TAKEN_BACK = "taken back"
    # It leaves its queue: the other shard has counted what became of it.
    DONE = "done"


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
    # Of work that a session of another shard has: the store keeps it in its queue until it is done.
    how: Lending | None = None

    @property
    def stays(self) -> bool:
        """Whether the store keeps the entry in its queue."""
        return self.how is not None and self.how is not Lending.DONE
