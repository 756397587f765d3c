"""What shards ask each other about requests, and the forms of the answers."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

# What the operations are called: of the shards of receivers, and of the requester's.
ASKED: Final = "asked"
ASKED_ONE: Final = "asked one"
SAID: Final = "said"
# Of any shard: whether sessions there have subscribed to exactly this channel.
CALLED: Final = "called"

# By the key of a session, the code and the text with which it refused; None if it will not answer.
Lost = Mapping[str, Sequence[str] | None]


class Responders(NamedTuple):
    """Who may answer a request, and who will not."""

    keys: Sequence[str]
    lost: Lost


NOBODY_ANSWERS: Final = Responders((), {})
