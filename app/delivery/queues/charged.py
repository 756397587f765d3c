"""A shared queue that charges its messages to the quotas of their senders."""

from collections.abc import Sequence

from holdfast.delivery.basics.counters import Counters
from holdfast.delivery.messages.message import Message
from holdfast.delivery.queues.queue import CallbackQueue, QueueLimits
from holdfast.delivery.topics.sender_quota import SenderQuota

# `SharedQueues` checks the limits before a message enters. Requeued messages always fit.


class ChargedQueue(CallbackQueue):
    """A shared queue that charges its messages to the quotas of their senders.

    Messages requeued by sessions or loaded from the store are not charged.
    """

    __slots__ = ("_accounts", "_senders")

    def __init__(self, counters: Counters, senders: SenderQuota) -> None:
        super().__init__(QueueLimits(), counters)
        self._senders = senders
        # The senders that a message is charged to, by its id.
        self._accounts: dict[int, Sequence[str]] = {}

    def charge(self, message: Message, senders: Sequence[str]) -> None:
        """Charge a message to these senders until it leaves."""
        if senders:
            self._accounts[message.id] = senders
            self._senders.add(senders, len(message.wire))

    def discharge(self, message: Message) -> None:
        """Stop charging a message that left the queue or did not enter it."""
        senders = self._accounts.pop(message.id, ())
        self._senders.remove(senders, len(message.wire))

    def clear(self) -> None:
        """Remove everything. The caller has counted it."""
        for message in self.new:
            self.discharge(message)
        super().clear()

    def _leave(self, messages: Sequence[Message]) -> None:
        if self._accounts:
            for message in messages:
                self.discharge(message)
        super()._leave(messages)
