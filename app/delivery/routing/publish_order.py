"""Keeps a channel's messages in order while the store has not confirmed one of them."""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.storing import PersistOutcome, RequestStep
from holdfast.delivery.queues.receivers import Receiver

R = TypeVar("R", bound=Receiver)


class AcceptedPublish(Generic[R]):
    """An accepted publish: its message, and its receivers at that time."""

    __slots__ = (
        "done",
        "kept",
        "latecomers",
        "leave_out",
        "message",
        "outcome",
        "receivers",
        "step",
    )

    def __init__(
        self,
        message: Message,
        receivers: Sequence[R],
        leave_out: R | None,
        done: Callable[[PersistOutcome], None] | None,
        kept: int = 0,
        step: RequestStep | None = None,
    ) -> None:
        self.message = message
        self.receivers = receivers
        self.leave_out = leave_out
        self.done = done
        self.step = step
        # How many receivers have it in the store, if it is stored.
        self.kept = kept
        # Durable receivers that subscribed while it waited. The store adds them once it has the
        # message.
        self.latecomers: list[str] = []
        self.outcome: PersistOutcome | None = None

    def add_callback(self, done: Callable[[PersistOutcome], None]) -> None:
        """Call `done` with the outcome as well."""
        first = self.done

        def both(outcome: PersistOutcome) -> None:
            if first is not None:
                first(outcome)
            done(outcome)

        self.done = both


class PublishOrder(Generic[R]):
    """A queue for each channel that waits for the store. Most channels have none.

    Args:
        show: Delivers a message to its receivers.
    """

    def __init__(self, show: Callable[[AcceptedPublish[R]], None]) -> None:
        self._show = show
        # By channel, while a message of it waits.
        self.waiting: dict[str, deque[AcceptedPublish[R]]] = {}

    def enter(self, channel: str, accepted: AcceptedPublish[R]) -> PersistOutcome | None:
        """Deliver an unstored message, now or after the messages that wait on its channel."""
        waiting = self.waiting.get(channel)
        if waiting is None:
            self._show(accepted)
            return PersistOutcome.KEPT
        accepted.outcome = PersistOutcome.KEPT
        waiting.append(accepted)
        return None

    def newest(self, channel: str) -> AcceptedPublish[R] | None:
        """Return the last message that waits to enter the channel's history."""
        waiting = self.waiting.get(channel, ())
        return next((each for each in reversed(waiting) if each.message.depth is not None), None)

    def keep(self, channel: str, accepted: AcceptedPublish[R]) -> Callable[[PersistOutcome], None]:
        """Add a message that waits for the store. Call the result with the store's answer.

        After UNKNOWN, call it again when the answer is known. Later messages no longer wait for
        this one.
        """
        self.waiting.setdefault(channel, deque()).append(accepted)
        return partial(self._answered, channel, accepted)

    def _answered(
        self, channel: str, accepted: AcceptedPublish[R], outcome: PersistOutcome
    ) -> None:
        if accepted.outcome is PersistOutcome.UNKNOWN:
            if outcome is PersistOutcome.KEPT:
                self._show_late(accepted)
            if accepted.step is not None:
                accepted.step.known(outcome)
            return
        accepted.outcome = outcome
        waiting = self.waiting[channel]
        while waiting and (known := waiting[0].outcome) is not None:
            first = waiting.popleft()
            if known is PersistOutcome.KEPT:
                self._show(first)
            if first.step is not None and known is not PersistOutcome.UNKNOWN:
                first.step.known(known)
            if first.done is not None:
                first.done(known)
        if not waiting:
            # Callbacks may have published to this channel in the meantime.
            self.waiting.pop(channel, None)

    def _show_late(self, accepted: AcceptedPublish[R]) -> None:
        """Deliver a message after later ones. Where those still wait, it goes first."""
        accepted.message.is_late = True
        for receiver in accepted.receivers:
            receiver.queue.is_mixed = True
        self._show(accepted)
