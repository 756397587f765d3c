"""The refusals of one client message, which may be thousands, while they are carried out."""

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from holdfast.delivery.error_codes import ErrorCode
from holdfast.delivery.verdicts import Verdict


class Refusal(NamedTuple):
    """A receiver has refused a message of a work queue; others may take it."""

    # The receiver's session key.
    key: str
    code: ErrorCode
    text: str


class Refusals:
    """The refusals of one message, ordered; some may have to wait for a later turn."""

    def __init__(self, refusals: Iterable[Verdict]) -> None:
        # Those that are not carried out yet.
        self.rest = deque(refusals)
        # Whether anything was refused. Then the receiver's answer must wait for the store: the
        # receiver never repeats a refusal that was answered, so after a restart its next
        # acknowledgement would settle the message.
        self.refused_any = False
