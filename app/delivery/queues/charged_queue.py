"""A shared queue that knows the senders of the messages that wait in it."""

from collections.abc import Sequence

from holdfast.delivery.basics.counters import Counters
from holdfast.delivery.messages.message import Message
from holdfast.delivery.queues.queue import CallbackQueue, QueueLimits
from holdfast.delivery.topics.senders import Senders

# `SharedQueues` checks the limits before a message enters; what returns always fits.
_UNLIMITED = QueueLimits(entries=2**62, bytes=2**62)


class ChargedQueue(CallbackQueue):
    """A shared queue, which charges its messages to the quotas of their senders.

    Messages that return from sessions, or come from the store, are charged to nobody.
    """

    __slots__ = ("_accounts", "_senders")

    def __init__(self, counters: Counters, senders: Senders) -> None:
        super().__init__(_UNLIMITED, counters)
        self._senders = senders
        # The senders to whom a message is charged, by its id.
        self._accounts: dict[int, Sequence[str]] = {}

    def charge(self, message: Message, senders: Sequence[str]) -> None:
        """Charge a message to these senders until it leaves."""
        if senders:
            self._accounts[message.id] = senders
            self._senders.add(senders, len(message.wire))

    def discharge(self, message: Message) -> None:
        """Stop charging a message: it has left the queue, or did not enter it."""
        senders = self._accounts.pop(message.id, ())
        self._senders.remove(senders, len(message.wire))

    def clear(self) -> None:
        """Remove everything; the caller has counted it."""
        for message in self.new:
            self.discharge(message)
        super().clear()

    def _leave(self, messages: Sequence[Message]) -> None:
        if self._accounts:
            for message in messages:
                self.discharge(message)
        super()._leave(messages)
