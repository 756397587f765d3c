"""What is dead before its letter is made: very many may die at once, and letters take time."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from app.delivery.dead_letters import DeadLetter
from app.delivery.entries import Entry


class Buried(Protocol):
    """A message that one receiver will not get; its letter is made when a call carries it."""

    @property
    def message(self) -> int:
        """The message's id."""
        ...

    @property
    def size(self) -> int:
        """How many bytes the original event has."""
        ...

    def letter(self) -> DeadLetter:
        """The letter, which says the same whenever it is made."""
        ...


class Death(NamedTuple):
    """What all that one receiver does not get for one reason have in common."""

    # An absolute name.
    receiver: str
    code: str
    reason: str
    # What was agreed with the receiver.
    policy: Mapping[str, Any] | None


class Dead:
    """An entry as it was when it died, whatever becomes of it later."""

    __slots__ = ("_attempts", "_death", "_message", "_redelivered", "_stamp", "_trail")

    def __init__(self, entry: Entry, death: Death, stamp: int) -> None:
        self._message = entry.message
        self._death = death
        self._stamp = stamp
        self._trail = entry.trail
        self._attempts = entry.attempts
        self._redelivered = entry.redelivered

    @property
    def message(self) -> int:
        return self._message.id

    @property
    def size(self) -> int:
        return len(self._message.wire)

    def letter(self) -> DeadLetter:
        death = self._death
        return DeadLetter.of(
            self._message,
            id=str(self._stamp),
            receiver=death.receiver,
            code=death.code,
            reason=death.reason,
            attempts=self._trail,
            attempt_count=self._attempts,
            redelivered=self._redelivered,
            policy=death.policy,
        )
