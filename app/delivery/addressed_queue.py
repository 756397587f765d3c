"""The queues of subjects."""

from collections.abc import Sequence

from holdfast.delivery.counters import Counters
from holdfast.delivery.messages import Message
from holdfast.delivery.queue import CallbackQueue, QueueLimits
from holdfast.delivery.senders import Senders

# Room in a subject's queue is reserved before a message enters; what returns always finds room.
_UNLIMITED = QueueLimits(entries=2**62, bytes=2**62)


class AddressedQueue(CallbackQueue):
    """The queue of a subject, which knows on whose account its messages wait.

    What came back from sessions, or from the store, waits on nobody's.
    """

    __slots__ = ("_accounts", "_senders")

    def __init__(self, counters: Counters, senders: Senders) -> None:
        super().__init__(_UNLIMITED, counters)
        self._senders = senders
        # Those who account for a message, by its id.
        self._accounts: dict[int, Sequence[str]] = {}

    def charge(self, message: Message, senders: Sequence[str]) -> None:
        """Let these account for a message, from now on until it leaves."""
        if senders:
            self._accounts[message.id] = senders
            self._senders.add(senders, len(message.wire))

    def discharge(self, message: Message) -> None:
        """Nobody accounts for the message any more: it has left, or did not come."""
        senders = self._accounts.pop(message.id, ())
        self._senders.remove(senders, len(message.wire))

    def clear(self) -> None:
        """Remove everything; the caller has counted it."""
        for message in self.waiting:
            self.discharge(message)
        super().clear()

    def _leave(self, messages: Sequence[Message]) -> None:
        if self._accounts:
            for message in messages:
                self.discharge(message)
        super()._leave(messages)
