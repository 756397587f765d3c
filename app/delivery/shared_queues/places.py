"""The shared queues of all kinds: subjects' queues, work queues, and delayed messages."""

from collections.abc import Sequence
from typing import Generic, TypeVar

from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.messages.message import Message
from holdfast.delivery.queues.receivers import Receiver
from holdfast.delivery.shared_queues.shared_queues import SharedQueues
from holdfast.delivery.shared_queues.subjects import Subjects
from holdfast.delivery.shared_queues.work import PREFIX
from holdfast.delivery.shared_queues.work_queues import WorkQueues

R = TypeVar("R", bound=Receiver)


class WaitingPlaces(Generic[R]):
    """The shared queues of all kinds."""

    def __init__(self, subjects: Subjects[R], work: WorkQueues[R]) -> None:
        self.subjects = subjects
        self.work = work
        # Queues from which sessions get nothing, by name. Each is the only one of its kind.
        self._apart: dict[str, SharedQueues[R]] = {}

    def add(self, name: str, queues: SharedQueues[R]) -> None:
        """Add a kind that has only the queue of this name, from which sessions get nothing."""
        self._apart[name] = queues

    def of(self, name: str) -> SharedQueues[R]:
        """Return the queues of the kind that this name belongs to."""
        apart = self._apart.get(name)
        if apart is not None:
            return apart
        return self.work if name.startswith(PREFIX) else self.subjects

    def assign_to(self, receiver: R) -> None:
        """Assign messages that wait for a receiver when the turn ends: it may have room now."""
        self.subjects.assign_to(receiver)
        self.work.assign_to(receiver)

    def assign_from(self, receiver: R) -> None:
        """Assign the messages of a shared queue to sessions."""
        self.of(receiver.subject).assign_from(receiver)

    def made_room(self, receiver: R) -> None:
        """Use the room that entries left in a queue; close a shared queue if it is idle."""
        self.of(receiver.subject).close_if_idle(receiver)
        self.assign_to(receiver)

    def requeue_all(self, receiver: R) -> None:
        """Requeue an ending session's addressed messages and work."""
        self.subjects.requeue_all(receiver)
        self.work.requeue_all(receiver)

    def requeue_late(self, receiver: R, message: Message) -> bool:
        """Requeue such a message if it arrived after the session's end. Returns whether it did."""
        return self.work.requeue_late(receiver, message) or self.subjects.requeue_late(
            receiver, message
        )

    def requeue(self, receiver: R, entry: Entry) -> None:
        """Requeue an addressed message, which has left the receiver's queue."""
        self.subjects.requeue(receiver, (entry,))

    def restore(self, name: str, messages: Sequence[Message]) -> None:
        """Restore a shared queue from the store."""
        self.of(name).restore(name, messages)

    @property
    def are_settled(self) -> bool:
        """Whether no message is on its way into a queue or out of it."""
        kinds = (self.subjects, self.work, *self._apart.values())
        return all(each.are_settled for each in kinds)

    def queues(self) -> Sequence[R]:
        """The receivers that own the shared queues."""
        return [*self.assigning(), *self.apart()]

    def assigning(self) -> Sequence[R]:
        """The receivers that own the queues from which sessions get messages."""
        return [*self.subjects.queues(), *self.work.queues()]

    def apart(self) -> Sequence[R]:
        """The receivers that own the other queues."""
        return [each for queues in self._apart.values() for each in queues.queues()]
