"""Letters of dead entries before they are written. `reactions` decides what becomes a dead letter.

Thousands of entries may die at once, and writing their letters takes time.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from holdfast.delivery.basics.error_codes import ErrorCode
from holdfast.delivery.letters.dead import DeadLetter
from holdfast.delivery.messages.entries import Entry


class UnwrittenLetter(Protocol):
    """A dead entry whose letter is created when the call that stores it is sent."""

    @property
    def message(self) -> int:
        """The message id."""
        ...

    @property
    def size(self) -> int:
        """The size of the original event in bytes."""
        ...

    def letter(self) -> DeadLetter:
        """Return the letter. Its content does not depend on when this is called."""
        ...


class Death(NamedTuple):
    """What the letters of one receiver that die together have in common."""

    # The receiver's absolute name.
    receiver: str
    code: ErrorCode
    # The reason that the receiver or the server gave.
    text: str
    # The receiver's terms.
    policy: Mapping[str, Any] | None


class DeadEntry:
    """A snapshot of an entry at its death; later changes of the entry do not affect it."""

    __slots__ = (
        "_attempts",
        "_death",
        "_message",
        "_redelivered",
        "_stamp",
        "_trail",
        "message",
        "size",
    )

    def __init__(self, entry: Entry, death: Death, stamp: int) -> None:
        self._message = message = entry.message
        self.message = message.id
        self.size = len(message.wire)
        self._death = death
        self._stamp = stamp
        self._trail = entry.trail
        self._attempts = entry.attempts
        self._redelivered = entry.redelivered

    def letter(self) -> DeadLetter:
        death = self._death
        return DeadLetter.of(
            self._message,
            id=str(self._stamp),
            receiver=death.receiver,
            code=death.code.text,
            reason=death.code.explained(death.text),
            text=death.text,
            attempts=self._trail,
            attempt_count=self._attempts,
            redelivered=self._redelivered,
            policy=death.policy,
        )
