"""The way of a message from its publisher to the queues of its receivers."""

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

from app.delivery.channels import Channel
from app.delivery.counters import Counters
from app.delivery.messages import Message
from app.delivery.receivers import Receiver
from app.delivery.routes import Routes

R = TypeVar("R", bound=Receiver)

log = logging.getLogger(__name__)


class Hub(Generic[R]):
    """Routes messages into queues and remembers whose queues have something to say.

    `on_ready` is called once when the first receiver becomes ready; the caller must then call
    `take_ready` before it waits for the network again: what a burst left becomes one response.
    """

    def __init__(
        self, *, on_ready: Callable[[], None], linger: Callable[[R, Message], None]
    ) -> None:
        self.routes: Routes[R] = Routes()
        self.counters = Counters()
        self._ready: list[R] = []
        self._on_ready = on_ready
        self._linger = linger

    def publish(self, channel: Channel, message: Message, *, leave_out: R | None = None) -> None:
        """Give the message to every receiver of the channel."""
        counters = self.counters
        counters.published += 1
        is_lazy = message.linger_s is not None
        for receiver in self.routes.receivers(channel):
            if receiver is leave_out:
                continue
            counters.accepted += 1
            if not receiver.queue.offer(message):
                self._warn(receiver)
                continue
            if is_lazy:
                self._linger(receiver, message)
            elif not receiver.is_ready:
                self.make_ready(receiver)

    def deliver(self, receiver: R, message: Message) -> None:
        """Give the message to one receiver."""
        self.counters.accepted += 1
        if not receiver.queue.offer(message):
            self._warn(receiver)
            return
        if message.linger_s is not None:
            self._linger(receiver, message)
        elif not receiver.is_ready:
            self.make_ready(receiver)

    def make_ready(self, receiver: R) -> None:
        """The receiver's queue is to be looked at when the turn ends."""
        if receiver.is_ready:
            return
        receiver.is_ready = True
        self._ready.append(receiver)
        if len(self._ready) == 1:
            self._on_ready()

    def take_ready(self) -> list[R]:
        """The receivers to be told now."""
        ready, self._ready = self._ready, []
        for receiver in ready:
            receiver.is_ready = False
        return ready

    def _warn(self, receiver: R) -> None:
        """Each queue that is full is told once, until it has been emptied."""
        if not receiver.queue.is_overflowing:
            receiver.queue.is_overflowing = True
            log.warning("queue of session %d is full, messages are discarded", receiver.number)

    def remove(self, receiver: R) -> None:
        """Nothing will be routed to this receiver any more; its queue is its owner's affair."""
        for pattern in receiver.subscriptions:
            self.routes.remove(pattern, receiver)
        receiver.subscriptions.clear()
