"""What each sender makes wait in the queues of subjects, and how much of it there may be."""

from collections import Counter
from collections.abc import Sequence

from holdfast.delivery.counters import Counters
from holdfast.delivery.messages import Message
from holdfast.delivery.queue import CallbackQueue, QueueLimits

# Room in a subject's queue is reserved before a message enters; what returns always finds room.
_UNLIMITED = QueueLimits(entries=2**62, bytes=2**62)


class Senders:
    """How many messages, of how many bytes, wait on account of each address and each subject."""

    def __init__(self, entries: int, bytes: int) -> None:
        # Zero means no limit.
        self._most_entries, self._most_bytes = entries, bytes
        self._entries: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()

    def may_add(self, senders: Sequence[str], size: int) -> bool:
        """Whether one more message of this size may wait on account of each of these."""
        most_entries, most_bytes = self._most_entries, self._most_bytes
        for each in senders:
            if 0 < most_entries <= self._entries[each]:
                return False
            if 0 < most_bytes < self._bytes[each] + size:
                return False
        return True

    def add(self, senders: Sequence[str], size: int) -> None:
        for each in senders:
            self._entries[each] += 1
            self._bytes[each] += size

    def remove(self, senders: Sequence[str], size: int) -> None:
        for each in senders:
            self._entries[each] -= 1
            self._bytes[each] -= size
            if not self._entries[each]:
                del self._entries[each], self._bytes[each]


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
