"""The order of a channel while the store is asked to keep one of its messages."""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, Protocol, TypeVar

from app.delivery.keeper import Kept
from app.delivery.messages import Message
from app.delivery.receivers import Receiver

R = TypeVar("R", bound=Receiver)
R_contra = TypeVar("R_contra", bound=Receiver, contravariant=True)


class Show(Protocol[R_contra]):
    """Gives a message to the receivers that it had when it was accepted."""

    def __call__(
        self,
        message: Message,
        receivers: Sequence[R_contra],
        leave_out: R_contra | None,
        kept: int,
        /,
    ) -> None: ...


class Publication(Generic[R]):
    """A message on its way, with what was decided when it was accepted."""

    __slots__ = ("done", "kept", "leave_out", "message", "outcome", "receivers")

    def __init__(
        self,
        message: Message,
        receivers: Sequence[R],
        leave_out: R | None,
        done: Callable[[Kept], None] | None,
        kept: int = 0,
    ) -> None:
        self.message = message
        self.receivers = receivers
        self.leave_out = leave_out
        self.done = done
        # How many of the receivers have it in the store, if it is kept.
        self.kept = kept
        self.outcome: Kept | None = None


class Lanes(Generic[R]):
    """A queue for each channel on which somebody waits for the store; most have none."""

    def __init__(self, show: Show[R]) -> None:
        self._show = show
        # By channel, while anything waits there.
        self.open: dict[str, deque[Publication[R]]] = {}

    def enter(self, channel: str, publication: Publication[R]) -> Kept | None:
        """Show what need not be kept, now or behind what waits on its channel."""
        lane = self.open.get(channel)
        if lane is None:
            self._show(publication.message, publication.receivers, publication.leave_out, 0)
            return Kept.KEPT
        publication.outcome = Kept.KEPT
        lane.append(publication)
        return None

    def keep(self, channel: str, publication: Publication[R]) -> Callable[[Kept], None]:
        """What waits for the store; call the result with its answer.

        After UNKNOWN it is called once more, when the truth is known: nobody waits for that.
        """
        self.open.setdefault(channel, deque()).append(publication)
        return partial(self._answered, channel, publication)

    def _answered(self, channel: str, publication: Publication[R], outcome: Kept) -> None:
        if publication.outcome is Kept.UNKNOWN:
            if outcome is Kept.KEPT:
                self._show_late(publication)
            return
        publication.outcome = outcome
        lane = self.open[channel]
        while lane and (known := lane[0].outcome) is not None:
            first = lane.popleft()
            if known is Kept.KEPT:
                self._show(first.message, first.receivers, first.leave_out, first.kept)
            if first.done is not None:
                first.done(known)
        if not lane:
            # Those who were told may have published meanwhile, into this very lane.
            self.open.pop(channel, None)

    def _show_late(self, publication: Publication[R]) -> None:
        """Who has not got yet what passed the message gets them in their order."""
        publication.message.is_late = True
        for receiver in publication.receivers:
            receiver.queue.is_mixed = True
        self._show(
            publication.message, publication.receivers, publication.leave_out, publication.kept
        )
