"""The way of a message from its publisher to the queues of its receivers."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from app.delivery.channels import Channel
from app.delivery.counters import Counters, Reason
from app.delivery.keeper import Keeper, Kept
from app.delivery.lanes import Lanes, Publication
from app.delivery.messages import Message
from app.delivery.notices import FULL, Notices
from app.delivery.receivers import Receiver
from app.delivery.routes import Routes
from app.delivery.witness import Witness

if TYPE_CHECKING:
    from app.delivery.watch import Watch

R = TypeVar("R", bound=Receiver)
R_contra = TypeVar("R_contra", bound=Receiver, contravariant=True)


class TurnAway(Protocol[R_contra]):
    """Decides what becomes of a message that a receiver's queue does not take."""

    def __call__(self, receiver: R_contra, message: Message, reason: Reason, /) -> None: ...


class Expiry(Protocol[R_contra]):
    """Knows when lives of messages end."""

    def watch(self, receiver: R_contra, /) -> None:
        """What leaves when its life is over waits for the receiver."""
        ...

    def finds_room(self, receiver: R_contra, message: Message, /) -> bool:
        """Whether a message need not be refused after all by a queue that is full."""
        ...


class Hub(Generic[R]):
    """Routes messages into queues and remembers whose queues have something to say.

    `on_ready` is called once when the first receiver becomes ready; the caller must then call
    `take_ready` before it waits for the network again: what a burst left becomes one response.
    """

    def __init__(
        self,
        *,
        on_ready: Callable[[], None],
        linger: Callable[[R, Message], None],
        keeper: Keeper,
        witness: Witness | None = None,
        notices: Notices | None = None,
    ) -> None:
        self.routes: Routes[R] = Routes()
        self.counters = Counters()
        self.keeper = keeper
        self._witness = witness
        self._notices = notices or Notices()
        self._accepted = None if witness is None else witness.accepted
        # Measures while somebody looks; usually nobody does.
        self.watch: Watch | None = None
        # How many receivers have their queue in the store; most deployments have none.
        self.durables = 0
        self.turned_away: TurnAway[R] = self._discard
        self.expiry: Expiry[R] | None = None
        # Messages with lower ids may be shown to receivers that have lost their right to them
        # since they were accepted: then this is called.
        self.recheck_before = 0
        self.recheck: Callable[[Message, Sequence[R]], None] | None = None
        self._lanes: Lanes[R] = Lanes(self._show_published)
        self._ready: list[R] = []
        self._on_ready = on_ready
        self._linger = linger

    @property
    def may_wait(self) -> bool:
        """Whether a publish may have to wait for the store."""
        return self.durables > 0 or bool(self._lanes.open)

    def publish(
        self,
        channel: Channel,
        message: Message,
        *,
        leave_out: R | None = None,
        persistent: bool | None = None,
        done: Callable[[Kept], None] | None = None,
    ) -> Kept | None:
        """Give the message to every receiver of the channel; None if `done` will tell what became.

        A durable message is kept first and shown then; what comes behind it on its channel waits.
        So is one with a key, durable or not: whether it came before is known to the store alone.
        """
        receivers = self.routes.receivers(channel)
        if self.watch is not None:
            self.watch.published(channel.name)
        is_keyed = message.key is not None
        if not self.durables and not self._lanes.open and not is_keyed:
            # As in `_show_published`.
            self.counters.published += 1
            self._show(message, receivers, leave_out, 0)
            return Kept.KEPT
        keys: Sequence[str] = ()
        if self.durables and persistent is not False:
            keys = [r.key for r in receivers if r.is_durable and r is not leave_out]
        if not keys and not is_keyed:
            return self._lanes.enter(channel.name, Publication(message, receivers, leave_out, done))
        if not self.keeper.is_available:
            return Kept.REFUSED
        message.is_durable = bool(keys)
        publication = Publication(message, receivers, leave_out, done, len(keys))
        answered = self._lanes.keep(channel.name, publication)
        self.keeper.keep(message, keys, answered)
        return None

    def _show_published(
        self, message: Message, receivers: Sequence[R], leave_out: R | None, kept: int
    ) -> None:
        self.counters.published += 1
        self._show(message, receivers, leave_out, kept)
        if message.id < self.recheck_before and self.recheck is not None:
            self.recheck(message, receivers)

    def _show(
        self, message: Message, receivers: Sequence[R], leave_out: R | None, kept: int
    ) -> None:
        is_lazy = message.linger_s is not None
        if leave_out is not None:
            receivers = [each for each in receivers if each is not leave_out]
        if self._accepted is not None:
            # The others are in the store, which has told of them.
            self._accepted.add(message, len(receivers) - kept)
        self._give(message, receivers, is_lazy=is_lazy)

    def _give(self, message: Message, receivers: Sequence[R], *, is_lazy: bool) -> None:
        self.counters.accepted += len(receivers)
        for receiver in receivers:
            if receiver.is_closed:
                self.turned_away(receiver, message, Reason.SESSION_ENDED)
                continue
            reason = receiver.queue.offer(message)
            if reason is not None and not self._finds_room(receiver, message):
                self._refuse(receiver, message, reason)
            elif is_lazy:
                self._linger(receiver, message)
            elif not receiver.is_ready:
                # As in `make_ready`.
                receiver.is_ready = True
                if not self._ready:
                    self._on_ready()
                self._ready.append(receiver)
        if message.expires_ms and self.expiry is not None:
            for receiver in receivers:
                self.expiry.watch(receiver)

    def publish_to(self, receivers: Sequence[R], message: Message) -> None:
        """Publish what nobody keeps, to these alone."""
        self._show_published(message, receivers, None, 0)

    def deliver(self, receiver: R, message: Message) -> None:
        """Give the message to one receiver, whatever it subscribed to."""
        message.is_direct = True
        self._show(message, (receiver,), None, 0)

    def replay(self, receiver: R, message: Message, letter: int) -> None:
        """Give the receiver what was a dead letter; if it is durable, the store has it already."""
        if self._witness is not None:
            self._witness.replayed(receiver.key, message, letter)
        self._give(message, (receiver,), is_lazy=False)

    def flow_again(self, receiver: R) -> None:
        """What was kept from the receiver may be handed over; how long it was is no latency."""
        if self.watch is not None:
            self.watch.excuse(receiver)
        self.make_ready(receiver)

    def make_ready(self, receiver: R) -> None:
        """The receiver's queue is to be looked at when the turn ends."""
        if receiver.is_ready:
            return
        receiver.is_ready = True
        if not self._ready:
            self._on_ready()
        self._ready.append(receiver)

    def take_ready(self) -> list[R]:
        """The receivers to be told now."""
        ready, self._ready = self._ready, []
        for receiver in ready:
            receiver.is_ready = False
        return ready

    def put_back(self, receivers: Sequence[R]) -> None:
        """There was no time to tell these: they are the first of the next turn."""
        late = [receiver for receiver in receivers if not receiver.is_ready]
        for receiver in late:
            receiver.is_ready = True
        if late and not self._ready:
            self._on_ready()
        self._ready = [*late, *self._ready]

    @property
    def has_ready(self) -> bool:
        """Whether somebody is to be told something."""
        return bool(self._ready)

    def remove(self, receiver: R) -> None:
        """Nothing will be routed to this receiver any more; its queue is its owner's affair."""
        receiver.is_closed = True
        if receiver.is_durable:
            self.durables -= 1
        for pattern in receiver.subscriptions:
            self.routes.remove(pattern, receiver)
        receiver.subscriptions.clear()

    def _finds_room(self, receiver: R, message: Message) -> bool:
        return self.expiry is not None and self.expiry.finds_room(receiver, message)

    def _refuse(self, receiver: R, message: Message, reason: Reason) -> None:
        """Each queue that is full is told once, until it has been emptied."""
        if not receiver.queue.is_overflowing:
            receiver.queue.is_overflowing = True
            self._notices.tell(FULL, receiver.key, reason.value)
        self.turned_away(receiver, message, reason)

    def _discard(self, receiver: R, message: Message, reason: Reason) -> None:
        self.counters.discarded[reason] += 1
