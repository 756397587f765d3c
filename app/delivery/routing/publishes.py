"""One publish on its way to its receivers, and what these will get at once."""

from collections.abc import Callable, Collection, Container, Iterable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from holdfast.delivery.basics.channels import Channel
from holdfast.delivery.messages.marks import BatchMark
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.storing import PersistOutcome, RequestStep
from holdfast.delivery.queues.receivers import Receiver

if TYPE_CHECKING:
    from holdfast.delivery.routing.selections import Candidate

R = TypeVar("R", bound=Receiver)


class Publish(Generic[R]):
    """One publish: its message, its receivers, and the callbacks for its outcome.

    The publisher sets the first group of attributes; `message` must be set before the hub gets the
    publish. The hub sets the second group.
    """

    __slots__ = (
        "addressed",
        "candidate",
        "channel",
        "done",
        "is_subscribable",
        "kept",
        "latecomers",
        "leave_out",
        "message",
        "outcome",
        "persistent",
        "receivers",
        "step",
    )

    message: Message

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        # What the selections of subscriptions look at. None if no subscription selects.
        self.candidate: Candidate | None = None
        # Receivers regardless of subscriptions.
        self.addressed: Sequence[R] = ()
        # Whether subscribers get it too.
        self.is_subscribable = True
        # The publisher, unless it gets its own messages. It gets the message only if addressed.
        self.leave_out: R | None = None
        # False if it must not be stored; True if its history is stored regardless of receivers.
        self.persistent: bool | None = None
        # Called with the outcome if that is known later.
        self.done: Callable[[PersistOutcome], None] | None = None
        # The step of a request, which is also called if an unknown outcome becomes known.
        self.step: RequestStep | None = None

        self.receivers: Sequence[R] = ()
        # How many receivers have it in the store, if it is stored.
        self.kept = 0
        # Durable receivers that subscribed while it waited. The store adds them once it has the
        # message.
        self.latecomers: Sequence[str] = ()
        self.outcome: PersistOutcome | None = None

    def add_callback(self, done: Callable[[PersistOutcome], None]) -> None:
        """Call `done` with the outcome as well."""
        first = self.done

        def both(outcome: PersistOutcome) -> None:
            if first is not None:
                first(outcome)
            done(outcome)

        self.done = both

    def then(self, done: Callable[[PersistOutcome], None]) -> None:
        """Call `done` with the outcome, before the callbacks so far."""
        later, self.done = self.done, done
        if later is not None:
            self.add_callback(later)


class NextAtOnce:
    """What receivers will get as soon as the store has it, if nothing changes until then.

    The store may have the hand-overs in the same step as the messages that bring them.

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
