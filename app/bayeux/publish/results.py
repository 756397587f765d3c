"""What became of a publish at another shard, or in a part of this one."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from holdfast.bayeux.state.calls import Answer
from holdfast.bayeux.wire.destinations import FAILED, Destination, outcome
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.delivery.basics.error_codes import NO_CONNECTION
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.publish_key import publish_key_of
from holdfast.delivery.messages.storing import PersistOutcome

Outcomes = Sequence[Mapping[str, Any]]


class State(StrEnum):
    """What became of it."""

    KEPT = "kept"
    # An earlier message has the same key.
    REPEATED = "repeated"
    # The newest message has the same data, and the publisher wants no repeat; or the publish only
    # configures a topic.
    UNCHANGED = "unchanged"
    # It has the same data as a message of which this is unknown.
    UNKNOWN = "unknown"
    # No destination takes it, or the home of its channel refuses it.
    REFUSED = "refused"
    # The sender has too much that waits.
    OVER_QUOTA = "over quota"
    # The store of the shard does not take it.
    NOT_STORED = "not stored"


class Result(NamedTuple):
    """The answer to a publish. Its state is a `State`."""

    state: str
    # The id of the message, or of the earlier one.
    id: int = 0
    # The error and its arguments, or the quota.
    error: str = ""
    args: Sequence[str] = ()
    # A report for each destination, as in the reply.
    outcomes: Outcomes = ()
    # Whether any destination takes it, and the keys of the sessions that get it.
    is_taken: bool = False
    receivers: Sequence[str] = ()

    @property
    def refused(self) -> Refused:
        """The refusal, if it is one."""
        ext = {"delivery": {"destinations": self.outcomes}} if self.outcomes else None
        return Refused(ErrorReply[self.error], *self.args, ext=ext)

    def to_answer(self) -> Answer:
        """Return what is answered: fields that say nothing are left out."""
        return {name: value for name, value in self._asdict().items() if value}

    def after(self, outcome: PersistOutcome, message: Message | None = None) -> "Result":
        """Return what became of a publish of which this is the result once it is kept."""
        if outcome is PersistOutcome.REPEATED and message is not None:
            key = publish_key_of(message)
            return self._replace(state=State.REPEATED, id=0 if key is None else key.first)
        without = {PersistOutcome.UNKNOWN: State.UNKNOWN, PersistOutcome.REFUSED: State.NOT_STORED}
        return Result(without[outcome]) if outcome in without else self


def refusal(refused: Refused) -> Result:
    """Return the result if a publish is refused."""
    outcomes = (refused.ext or {}).get("delivery", {}).get("destinations", ())
    error, args = refused.error.name, refused.arguments
    return Result(State.REFUSED, error=error, args=args, outcomes=outcomes)


def unreadable(destinations: Sequence[Destination]) -> Result:
    """Return the result if another shard could not carry the publish out."""
    fault = ErrorReply.SERVER_FAULT
    outcomes = [outcome(each, FAILED, "internal.unknown") for each in destinations]
    return Result(State.REFUSED, error=fault.name, outcomes=outcomes)


def not_stored(destinations: Sequence[Destination]) -> Result:
    """Return the result if the store of a shard does not take the message."""
    outcomes = [outcome(each, FAILED, NO_CONNECTION.text) for each in destinations]
    return Result(State.NOT_STORED, outcomes=outcomes)
