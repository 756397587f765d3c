"""The form of letters by which a shard addresses a message to subjects of another, and of answers.

A letter is a line with a JSON object, and the encoded event.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

from orjson import dumps, loads

from holdfast.bayeux.wire.destinations import FAILED, Destination, outcome
from holdfast.bayeux.wire.errors import ErrorReply
from holdfast.delivery.basics.error_codes import NO_CONNECTION
from holdfast.delivery.basics.json_text import to_json
from holdfast.delivery.codec.attributes import Way, attributes_of, put_attributes
from holdfast.delivery.messages.message import Message

# What the letter is called in the log.
ADDRESSED: Final = "addressed"


class Addressed(NamedTuple):
    """A message to some destinations that one shard has."""

    message: Message
    destinations: Sequence[Destination]
    # Who pays if it has to wait: the accounts of the sender.
    accounts: Sequence[str]
    persistent: bool | None
    # Whether the topic of the channel counts the queues that get it.
    is_counted: bool = False


class State(Enum):
    """What became of a message to the destinations of one shard."""

    KEPT = "kept"
    # An earlier message has the same key.
    REPEATED = "repeated"
    # No destination takes it.
    REFUSED = "refused"
    # The sender has too much that waits.
    OVER_QUOTA = "over quota"
    # The store of the shard does not take it.
    NOT_STORED = "not stored"


class Result(NamedTuple):
    """The answer."""

    state: State
    # A report for each destination, as in the reply.
    outcomes: Sequence[Mapping[str, Any]]
    # The error and its arguments, or the quota.
    error: str = ""
    args: Sequence[str] = ()
    # The id of the earlier message.
    first: int = 0
    # Whether any destination takes it, and the keys of the sessions that get it.
    is_taken: bool = False
    receivers: Sequence[str] = ()

    def to_json(self) -> bytes:
        """Return the answer as bytes."""
        return to_json({**self._asdict(), "state": self.state.value})


def unreadable(destinations: Sequence[Destination]) -> Result:
    """Return the result if another shard could not carry the publish out."""
    fault = ErrorReply.SERVER_FAULT
    outcomes = [outcome(each, FAILED, "internal.unknown") for each in destinations]
    return Result(State.REFUSED, outcomes, error=fault.name)


def not_stored(destinations: Sequence[Destination]) -> Result:
    """Return the result if the store of a shard does not take the message."""
    outcomes = [outcome(each, FAILED, NO_CONNECTION.text) for each in destinations]
    return Result(State.NOT_STORED, outcomes)


def result_of(answer: bytes) -> Result:
    """Undo `Result.to_json`. Raises `ValueError`, `KeyError` or `TypeError` for another form."""
    fields = loads(answer)
    return Result(**{**fields, "state": State(fields["state"])})


def packed(addressed: Addressed) -> bytes:
    """Return the letter."""
    message, destinations, accounts, persistent, is_counted = addressed
    head: dict[str, Any] = {
        "id": message.id,
        "channel": message.channel,
        "sender": message.sender,
        "accounts": [*accounts],
        "to": rows_of(destinations),
        "persistent": persistent,
        "counted": is_counted,
        **attributes_of(message, Way.CALL),
    }
    return dumps(head) + b"\n" + message.wire


def addressed_in(letter: bytes) -> Addressed:
    """Undo `packed`. Raises `ValueError`, `KeyError` or `TypeError` for another form."""
    line, _, wire = letter.partition(b"\n")
    head = loads(line)
    message = Message(wire, id=head["id"], channel=head["channel"], sender=head["sender"])
    put_attributes(message, head)
    to = destinations_in(head["to"])
    return Addressed(message, to, head["accounts"], head["persistent"], head["counted"])


def rows_of(destinations: Sequence[Destination]) -> Sequence[Sequence[Any]]:
    """Return the destinations as a letter has them."""
    return [[to.subject, to.number, to.forces_queuing, to.is_optional] for to in destinations]


def destinations_in(rows: Sequence[Sequence[Any]]) -> tuple[Destination, ...]:
    """Undo `rows_of`."""
    return tuple([Destination(*each) for each in rows])
