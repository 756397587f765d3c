"""Moves of messages between a shared queue and the queues of sessions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from holdfast.delivery.messages.message import Message


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
