"""What the delivery core asks of those whose receivers it settles for."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from app.delivery.deaths import Buried
from app.delivery.error_codes import ErrorCode
from app.delivery.reactions import ErrorHandler
from app.delivery.receivers import Receiver

R_contra = TypeVar("R_contra", bound=Receiver, contravariant=True)


class Owner(Protocol[R_contra]):
    """Whose receivers they are."""

    def end(self, receiver: R_contra, code: ErrorCode, /) -> None:
        """The receiver is done with: its queue is empty, nothing more must come to it."""
        ...

    def tell(self, dead: Sequence[Buried], told: Callable[[], None], /) -> None:
        """The letters of these are on record: call `told` when whoever listens has been told."""
        ...

    def note(self, receiver: R_contra, /) -> None:
        """What is remembered of the receiver has changed, and when it must be looked at."""
        ...

    def handler(self, receiver: R_contra, channel: str, /) -> ErrorHandler:
        """Who decides on this receiver's failures on this channel."""
        ...

    def wants_letters(self, receiver: R_contra, channel: str, /) -> bool:
        """Whether what this receiver does not get becomes a dead letter."""
        ...

    def max_attempts(self, channel: str, /) -> int | None:
        """After how many hand-overs a message of the channel is dead, if there is such a limit."""
        ...

    def reached(self, channel: str, /) -> Iterable[str]:
        """The persons whom it would hit if the channel were held back now."""
        ...

    def alert(self, channel: str, reason: str, /) -> None:
        """A channel is held back from now on: its receivers refuse what comes there."""
        ...

    def release(self, channel: str, /) -> None:
        """A channel that was held back passes again: somebody took what it was tried with."""
        ...

    def policy(self, receiver: R_contra, /) -> Mapping[str, Any] | None:
        """What was agreed with the receiver."""
        ...

    def transport(self, receiver: R_contra, /) -> str:
        """How the receiver is connected."""
        ...
