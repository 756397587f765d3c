"""What receivers will get as soon as the store has it, if nothing changes until then."""

from collections.abc import Collection, Container, Iterable

from holdfast.delivery.messages.marks import BatchMark
from holdfast.delivery.messages.message import Message
from holdfast.delivery.queues.receivers import Receiver


class NextAtOnce:
    """Collects the hand-overs that messages will bring; the store may have them in the same step.

    Args:
        held: The channels that are held.
    """

    def __init__(self, held: Container[str]) -> None:
        self._held = held
        # By receiver, its hand-over, and the ids in it.
        self.hand_overs: dict[str, BatchMark] = {}
        self._ids: dict[str, list[int]] = {}

    def add(
        self, message: Message, receivers: Iterable[Receiver], but: Collection[str] = ()
    ) -> None:
        """Add a message for receivers, without those that get others before."""
        if message.linger_s is not None or message.channel in self._held:
            return
        for receiver in receivers:
            ids = self._ids.get(receiver.key)
            if not receiver.is_durable:
                continue
            if ids is not None:
                ids.append(message.id)
            elif receiver.gets_next_at_once() and receiver.key not in but:
                queue, ids = receiver.queue, [message.id]
                self._ids[receiver.key] = ids
                self.hand_overs[receiver.key] = BatchMark(queue.batch + 1, queue.seq + 1, ids)
