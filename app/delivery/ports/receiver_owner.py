"""The port of the delivery core to the owner of its receivers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from holdfast.delivery.basics.error_codes import ErrorCode
from holdfast.delivery.letters.unwritten_letters import UnwrittenLetter
from holdfast.delivery.ports.reactions import ErrorHandler
from holdfast.delivery.queues.receivers import Receiver

R_contra = TypeVar("R_contra", bound=Receiver, contravariant=True)


class Owner(Protocol[R_contra]):
    """The owner of the receivers, and what the core asks of it."""

    def fail_session(self, receiver: R_contra, code: ErrorCode, /) -> None:
        """End the receiver, whose queue the caller has emptied; nothing more may enter it."""
        ...

    def announce(self, dead: Sequence[UnwrittenLetter], done: Callable[[], None], /) -> None:
        """Report stored letters to their listeners, if there are any, then call `done`."""
        ...

    def note(self, receiver: R_contra, now: float, /) -> None:
        """Note that the receiver's record or its next deadline has changed."""
        ...

    def handler(self, receiver: R_contra, channel: str, /) -> ErrorHandler:
        """Return the error handler of this receiver on this channel."""
        ...

    def wants_letters(self, receiver: R_contra, channel: str, /) -> bool:
        """Return whether undelivered messages of this receiver become dead letters."""
        ...

    def max_attempts(self, channel: str, /) -> int | None:
        """Return how many hand-overs a message of the channel has at most; None if unlimited."""
        ...

    def reached(self, channel: str, now: float, /) -> Iterable[str]:
        """Return the persons that a hold of this channel would affect now."""
        ...

    def alert(self, channel: str, reason: str, /) -> None:
        """Report that a channel is held back, because its receivers refuse its messages."""
        ...

    def release(self, channel: str, /) -> None:
        """Release a held channel after a successful probe."""
        ...

    def policy(self, receiver: R_contra, /) -> Mapping[str, Any] | None:
        """Return the terms that the receiver negotiated."""
        ...
