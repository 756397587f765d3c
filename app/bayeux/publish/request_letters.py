"""The forms of letters about requests, and of their answers."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from orjson import loads

from holdfast.delivery.basics.json_text import to_json

# What the letters are called in the log: to the shards of receivers, and to the requester's.
ASKED: Final = "asked"
ASKED_ONE: Final = "asked one"
SAID: Final = "said"
REPLIED: Final = "replied"
# To any shard: whether sessions there have subscribed to exactly this channel.
CALLED: Final = "called"

# By the key of a session, the code and the text with which it refused; None if it will not answer.
Lost = Mapping[str, Sequence[str] | None]


class Responders(NamedTuple):
    """Who may answer a request, and who will not."""

    keys: Sequence[str]
    lost: Lost

    def to_json(self) -> bytes:
        """Return them as bytes."""
        return to_json(self._asdict())


NOBODY_ANSWERS: Final = Responders((), {})


def responders_in(answer: bytes) -> Responders:
    """Undo `Responders.to_json`. Raises `ValueError`, `KeyError` or `TypeError`."""
    fields = loads(answer)
    return Responders(fields["keys"], fields["lost"])


class Said(NamedTuple):
    """What has changed about a request at the shard of its receivers."""

    address: str
    responders: Responders

    def to_json(self) -> bytes:
        """Return the letter."""
        return to_json({"address": self.address, **self.responders._asdict()})


def said_in(letter: bytes) -> Said:
    """Undo `Said.to_json`. Raises `ValueError`, `KeyError` or `TypeError`."""
    return Said(loads(letter)["address"], responders_in(letter))


class Reply(NamedTuple):
    """The reply of a session to a request of another shard."""

    address: str
    key: str
    # Its absolute name.
    sender: str
    event: Mapping[str, Any]

    def to_json(self) -> bytes:
        """Return the letter."""
        return to_json(self._asdict())


def reply_in(letter: bytes) -> Reply:
    """Undo `Reply.to_json`. Raises `ValueError`, `KeyError` or `TypeError`."""
    return Reply(**loads(letter))


class Verdict(NamedTuple):
    """What became of a reply: a fault, or none."""

    # A `ReplyFault`.
    fault: str = ""
    # Whether the store of the requester's shard does not take it.
    is_refused: bool = False

    def to_json(self) -> bytes:
        """Return the answer."""
        return to_json(self._asdict())


def verdict_in(answer: bytes) -> Verdict:
    """Undo `Verdict.to_json`. Raises `ValueError`, `KeyError` or `TypeError`."""
    fields = loads(answer)
    return Verdict(fields["fault"], fields["is_refused"])
