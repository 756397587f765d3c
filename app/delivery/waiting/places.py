"""The places where messages wait outside of sessions: the queues of subjects and work queues."""

from collections.abc import Sequence
from typing import Generic, TypeVar

from holdfast.delivery.basics.error_codes import ErrorCode
from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.messages.message import Message
from holdfast.delivery.queues.receivers import Receiver
from holdfast.delivery.waiting.shared_queues import SharedQueues
from holdfast.delivery.waiting.subjects import Subjects
from holdfast.delivery.waiting.work_queues import PREFIX, WorkQueues

R = TypeVar("R", bound=Receiver)


class WaitingPlaces(Generic[R]):
    """All shared queues, of both kinds."""

    def __init__(self, subjects: Subjects[R], work: WorkQueues[R]) -> None:
        self.subjects = subjects
        self.work = work

    def _of(self, name: str) -> SharedQueues[R]:
        """Return the queues with this kind of name."""
        return self.work if name.startswith(PREFIX) else self.subjects

    def move_on_to(self, receiver: R) -> None:
        """Move on messages that wait for a receiver, when the turn ends: it may have room now."""
        self.subjects.move_on_to(receiver)
        self.work.move_on_to(receiver)

    def pass_on(self, receiver: R) -> None:
        """Move the messages of a shared queue on to sessions."""
        self._of(receiver.subject).pass_on(receiver)

    def made_room(self, receiver: R) -> None:
        """Use the room in a queue that entries have left; close a shared one if it is idle."""
        self._of(receiver.subject).close_if_idle(receiver)
        self.move_on_to(receiver)

    def take_back(self, receiver: R) -> None:
        """Return an ending session's addressed messages and work to their shared queues."""
        self.subjects.take_back(receiver)
        self.work.take_back(receiver)

    def take_back_late(self, receiver: R, message: Message) -> bool:
        """Return such a message that came after the session's end."""
        return self.work.take_back_late(receiver, message) or self.subjects.take_back_late(
            receiver, message
        )

    def relieve(self, receiver: R) -> None:
        """Return the work that waits for a session which is not live, or no longer subscribes."""
        self.work.relieve(receiver)

    def refuse(self, receiver: R, entry: Entry, code: ErrorCode, text: str) -> None:
        """Return work that a receiver has refused for the other receivers."""
        self.work.refuse(receiver, entry, code, text)

    def give_back(self, receiver: R, entry: Entry) -> None:
        """Return an addressed message, which has left the queue, to the receiver's subject."""
        self.subjects.give_back(receiver, (entry,))

    def restore(self, name: str, messages: Sequence[Message]) -> None:
        """Restore a shared queue from the store."""
        self._of(name).restore(name, messages)

    def queues(self) -> Sequence[R]:
        """The receivers that have shared queues."""
        return [*self.subjects.queues(), *self.work.queues()]
