"""The port through which the delivery core calls the owner of its receivers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from holdfast.delivery.letters.unwritten import UnwrittenLetter
from holdfast.delivery.ports.error_handler import ErrorHandler
from holdfast.delivery.queues.receivers import Receiver

R_contra = TypeVar("R_contra", bound=Receiver, contravariant=True)


class Owner(Protocol[R_contra]):
    """Owns the receivers and answers the core's questions about them."""

    def announce(self, dead: Sequence[UnwrittenLetter], done: Callable[[], None], /) -> None:
        """Announce stored letters to their listeners, if there are any, then call `done`."""
        ...

    def note(self, receiver: R_contra, now: float, /) -> None:
        """Schedule the receiver: its record or its next deadline has changed."""
        ...

    def handler(self, receiver: R_contra, channel: str, /) -> ErrorHandler:
        """Return the error handler for this receiver on this channel."""
        ...

    def wants_letters(self, receiver: R_contra, channel: str, /) -> bool:
        """Return whether undelivered messages of this receiver become dead letters."""
        ...

    def max_attempts(self, channel: str, /) -> int | None:
        """Return how often a message of the channel may be handed over; None if unlimited."""
        ...

    def reached(self, channel: str, now: float, /) -> Iterable[str]:
        """Return the persons that a hold of this channel would affect now."""
        ...

    def alert(self, channel: str, reason: str, /) -> None:
        """Alert operators: a channel is held back because its receivers refuse its messages."""
        ...

    def release(self, channel: str, /) -> None:
        """Release a held channel after a successful probe."""
        ...

    def policy(self, receiver: R_contra, /) -> Mapping[str, Any] | None:
        """Return the terms that the receiver agreed on."""
        ...
