"""Routes messages from publishers into the queues of receivers."""

from collections.abc import Callable, Container, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from holdfast.delivery.basics.channels import LISTENS_ROW, SYSTEM, Channel
from holdfast.delivery.basics.feature_records import record_of, with_record
from holdfast.delivery.basics.ignoring import ignore
from holdfast.delivery.basics.notices import FULL, Notices
from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.messages.crossing import Crossings
from holdfast.delivery.messages.marks import NO_HAND_OVERS, BatchMark
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.publish_key import publish_key_of
from holdfast.delivery.messages.storing import NO_FIELDS, PersistOutcome, RequestFields
from holdfast.delivery.ports.ledger import Ledger
from holdfast.delivery.ports.store_port import StorePort
from holdfast.delivery.queues.features import QueueRecord
from holdfast.delivery.queues.receivers import Receiver
from holdfast.delivery.routing.histories import Histories
from holdfast.delivery.routing.kept_messages import NS_PER_CURSOR, cursor_of
from holdfast.delivery.routing.publish_order import PublishOrder
from holdfast.delivery.routing.publishes import NextAtOnce, Publish
from holdfast.delivery.routing.routes import Routes
from holdfast.delivery.routing.selections import Selection
from holdfast.delivery.topics.configured import Topics

if TYPE_CHECKING:
    from holdfast.delivery.ports.other_shards import OthersPort
    from holdfast.delivery.routing.latency import LatencySampler
    from holdfast.delivery.routing.settling_port import SettlingPort

# Looking at more receivers costs more than another call of the store.
_FEW: Final = 8

R = TypeVar("R", bound=Receiver)


class Hub(Generic[R]):
    """Routes messages into queues and records which receivers have news.

    `on_ready` is called when the first receiver becomes ready. The caller must then call
    `take_ready` before it waits for the network again, so that a burst becomes one response for
    each receiver.
    """

    def __init__(
        self,
        *,
        on_ready: Callable[[], None],
        linger: Callable[[R, Message], None],
        store: StorePort,
        settling: "SettlingPort[R]",
        histories: Histories,
        ledger: Ledger,
        routes: Routes[R],
        topics: Topics,
        notices: Notices,
        others: "OthersPort | None" = None,
        held: Container[str] = (),
    ) -> None:
        self.histories = histories
        self.routes = routes
        self._topics = topics
        self.store = store
        self.ledger = ledger
        self.counters = ledger.counters
        self._notices = notices
        # Takes latency samples while an operator watches live figures; otherwise None.
        self.watch: LatencySampler | None = None
        # The number of durable receivers. Most deployments have none.
        self.durables = 0
        self.settling = settling
        # Receivers of messages with lower ids, accepted before rights changed, are checked again.
        self.recheck_before = 0
        # The other shards of the deployment, if there are any, and how messages cross to them.
        self.others = others
        self.crossings = None if others is None else Crossings(others)
        self.publish_order: PublishOrder[R] = PublishOrder(self._show, histories.wake)
        # Receivers that may have news, until `take_ready` takes them.
        self.ready: list[R] = []
        self._on_ready = on_ready
        self._linger = linger
        # The channels that are held.
        self._held = held

    @property
    def waits_for_store(self) -> bool:
        """Whether the store has not answered for some publish."""
        return bool(self.publish_order.waiting)

    def is_coming(self, channel: str) -> bool:
        """Whether an accepted message of the channel is waiting for the store."""
        return channel in self.publish_order.waiting

    def newest(self, channel: str, now_ms: int) -> Message | None:
        """Return the newest message that the channel keeps, or will keep once it is stored."""
        coming = self.publish_order.newest(channel)
        if coming is not None:
            return coming.message
        kept = self.histories.get(channel)
        newest = [] if kept is None else kept.newest(1, now_ms)
        return newest[0] if newest else None

    def outcome_of(
        self, message: Message, done: Callable[[PersistOutcome], None] | None
    ) -> PersistOutcome | None:
        """Return the outcome of the newest message; None if `done` will be called with it."""
        coming = self.publish_order.newest(message.channel)
        if coming is None:
            return PersistOutcome.KEPT
        if done is not None:
            coming.add_callback(done)
        return None

    def publish(self, publish: Publish[R]) -> PersistOutcome | None:
        """Add the message to the queues of the channel's receivers and of addressed ones.

        Returns the outcome, or None if the publish gets it later: a durable message is stored
        before it is queued, and later messages of its channel wait for it. The same applies to any
        message with a publish key, because only the store recognises a repeat.
        """
        message = publish.message
        publish.receivers = receivers = self._receivers_of(publish)
        if self.watch is not None:
            self.watch.published(publish.channel.name)
        is_keyed = publish_key_of(message) is not None
        # Whether its history is stored regardless of receivers.
        is_to_keep = message.keeping is not None and publish.persistent is True
        if self.others is not None and publish.is_subscribable and publish.persistent is not False:
            is_to_keep |= self.others.has_durable(message.channel)
        if not (self.durables or self.publish_order.waiting or is_keyed or is_to_keep):
            self._show(publish)
            return PersistOutcome.KEPT
        durable: Sequence[R] = ()
        if self.durables and publish.persistent is not False:
            leave_out = publish.leave_out
            durable = [each for each in receivers if each.is_durable and each is not leave_out]
        keys: Sequence[str] = [each.key for each in durable]
        if not (keys or is_keyed or is_to_keep):
            return self.publish_order.enter(publish)
        if not self.store.is_available:
            return PersistOutcome.REFUSED
        message.is_durable = bool(keys) or is_to_keep
        publish.kept = len(keys)
        answered = self.publish_order.keep(publish)
        if self.crossings is not None and publish.is_subscribable:
            waiting = self.publish_order.crossing(message.channel)
            answered = self.crossings.when_stored(message, waiting, answered)
        if message.keeping is not None and message.is_durable:
            # A message that is durable for its receivers is durable in its history too.
            keys = [*keys, publish.channel.name]
        hand_overs: Mapping[str, BatchMark] = NO_HAND_OVERS
        if len(durable) <= _FEW and not is_keyed:
            next_at_once = NextAtOnce(self._held)
            next_at_once.add(message, durable)
            hand_overs = next_at_once.hand_overs
        self.store.keep(message, keys, answered, _fields(publish), hand_overs=hand_overs)
        return None

    def _receivers_of(self, publish: Publish[R]) -> Sequence[R]:
        receivers: Sequence[R] = ()
        if publish.is_subscribable:
            receivers = (
                self.routes.receivers(publish.channel)
                if publish.candidate is None
                else self.routes.selecting_receivers(publish.channel, publish.candidate)
            )
        else:
            publish.message.keeping = None
        if publish.addressed:
            receivers = tuple(dict.fromkeys((*publish.addressed, *receivers)))
            if publish.leave_out in publish.addressed:
                publish.leave_out = None
        return receivers

    def _show(self, publish: Publish[R]) -> None:
        message = publish.message
        self.counters.published += 1
        self.ledger.rankings.published(message.sender, message.channel)
        if publish.latecomers:
            # These are copies, as from a history: the publish is in the journal already.
            self.store.keep(message.initial(), publish.latecomers, ignore)
        self._show_published(message, publish.receivers, publish.leave_out, publish.kept)
        if self.crossings is not None and publish.is_subscribable:
            self.crossings.shown(message, is_early=self.publish_order.is_early)

    def show_arrived(self, message: Message, receivers: Sequence[R], kept: int) -> None:
        """Deliver a message that another shard accepted. For `kept` receivers, it is stored."""
        self._show_published(message, receivers, None, kept)

    def _show_published(
        self, message: Message, receivers: Sequence[R], leave_out: R | None, kept: int
    ) -> None:
        if leave_out is not None:
            receivers = [each for each in receivers if each is not leave_out]
        for record in message.records or ():
            record.shown_to(message, receivers)
        # For `kept` receivers, the store has the message and the note about it.
        self.ledger.published(message, len(receivers) - kept)
        if message.records is None:
            self._give(message, receivers)
        else:
            self._give_with_records(message, receivers)
        if message.keeping is not None:
            self.histories.append(message, message.keeping)
        if message.id < self.recheck_before:
            self.settling.recheck(message, receivers)

    def _give(self, message: Message, receivers: Sequence[R]) -> int:
        """Add the message to the queues. Returns how many refused it."""
        is_lazy = message.linger_s is not None
        self.counters.accepted += len(receivers)
        # Overflows are reported once per message instead of once per receiver.
        refusing: dict[Reason, list[R]] = {}
        refused = 0
        for receiver in receivers:
            if not receiver.takes_messages:
                refusing.setdefault(Reason.SESSION_ENDED, []).append(receiver)
                continue
            reason = receiver.queue.offer(message)
            if reason is not None and not self.settling.make_room_for(receiver, message):
                self._note_overflow(receiver, reason)
                refusing.setdefault(reason, []).append(receiver)
            elif is_lazy:
                self._linger(receiver, message)
            elif not receiver.is_ready:
                # As `make_ready`, without a call for each receiver.
                receiver.is_ready = True
                if not self.ready:
                    self._on_ready()
                self.ready.append(receiver)
        for reason, those in refusing.items():
            self.settling.turned_away(those, message, reason)
            refused += len(those)
        if message.expires_ms:
            for receiver in receivers:
                self.settling.watch_expiry(receiver)
        return refused

    def _give_with_records(self, message: Message, receivers: Sequence[R]) -> None:
        """Tell the records of the message, and add it to the queues, which they may count."""
        for record in message.records or ():
            record.published(message)
        if not message.is_counted:
            self._give(message, receivers)
            return
        records = message.records or ()
        for record in records:
            record.entered_queues(len(receivers))
        refused = self._give(message, receivers)
        for record in records:
            record.left_queues(refused)
        for receiver in receivers:
            receiver.queue.has_counted = True

    def publish_to(self, receivers: Sequence[R], message: Message) -> None:
        """Publish a passing message to these receivers only."""
        self.counters.published += 1
        self._show_published(message, receivers, None, 0)

    def deliver(self, receiver: R, message: Message) -> None:
        """Add the message to one receiver's queue, regardless of subscriptions."""
        message.is_direct = True
        self.ledger.published(message, 1)
        self._give(message, (receiver,))

    def catch_up(self, receiver: R, messages: Sequence[Message]) -> None:
        """Queue copies of messages from histories, ahead of later publishes."""
        for message in messages:
            self.ledger.copied(message, receiver)
            if message.records is None:
                self._give(message, (receiver,))
            else:
                self._give_with_records(message, (receiver,))

    def include(self, receiver: R, publish: Publish[R]) -> None:
        """Add a new subscriber to the receivers of a publish that waits for the store."""
        if receiver in publish.receivers or receiver is publish.leave_out:
            return
        publish.receivers = (*publish.receivers, receiver)
        if publish.message.is_durable and receiver.is_durable:
            publish.kept += 1
            publish.latecomers = (*publish.latecomers, receiver.key)

    def complete_cursor(self) -> int:
        """Return the cursor up to which no further message will enter a history."""
        others, newest = self.others, self.histories.newest
        return self.complete_before(newest) if others is None else others.complete_cursor()

    def complete_before(self, newest: int) -> int:
        """Return the cursor up to which all messages were shown that have ids up to the newest."""
        before = [first.id - NS_PER_CURSOR for first in self.publish_order.firsts()]
        return cursor_of(min([newest, *before]))

    def replay(self, receiver: R, message: Message, letter: int) -> None:
        """Queue a replayed dead letter. If the receiver is durable, the store already has it."""
        self.ledger.replayed(receiver.key, message, letter)
        self._give(message, (receiver,))

    def flow_again(self, receiver: R) -> None:
        """Look at a queue that flows again. The time for which it was held is no latency."""
        if self.watch is not None:
            self.watch.excuse(receiver)
        self.make_ready(receiver)

    def make_ready(self, receiver: R) -> None:
        """Look at the receiver's queue when the turn ends."""
        if receiver.is_ready:
            return
        receiver.is_ready = True
        if not self.ready:
            self._on_ready()
        self.ready.append(receiver)

    def take_ready(self) -> list[R]:
        """Take the receivers that have news."""
        ready, self.ready = self.ready, []
        for receiver in ready:
            receiver.is_ready = False
        return ready

    def put_back(self, receivers: Sequence[R]) -> None:
        """Put back receivers that this turn had no time for. They come first in the next turn."""
        late = [receiver for receiver in receivers if not receiver.is_ready]
        for receiver in late:
            receiver.is_ready = True
        if late and not self.ready:
            self._on_ready()
        self.ready = [*late, *self.ready]

    def make_durable(self, receiver: R) -> None:
        """Let the store have what the receiver gets from now on."""
        assert not receiver.is_durable
        receiver.is_durable = True
        self.durables += 1
        if self.others is not None:
            for pattern in receiver.subscriptions:
                self.others.add_row(pattern)

    def subscribe(self, receiver: R, pattern: Channel, selection: Selection | None = None) -> None:
        """Add a subscription, or replace the selection of an existing one."""
        is_new = pattern.name not in receiver.subscriptions
        if self.others is not None and is_new:
            self.others.join(pattern.name, pattern.is_wild)
            if receiver.is_durable:
                self.others.add_row(pattern.name)
            if pattern.is_system:
                self.others.add_row(LISTENS_ROW + pattern.name)
        is_told = pattern.name not in self.routes or self.others is not None
        self.routes.add(pattern, receiver, selection)
        if is_told and self._topics.are_used and not pattern.is_wild:
            self._topics.subscribe(pattern.name)

    def unsubscribe(self, receiver: R, pattern: str) -> None:
        """Remove a subscription of the receiver."""
        if self.others is not None:
            if receiver.is_durable:
                self.others.remove_row(pattern)
            if pattern.startswith(SYSTEM):
                self.others.remove_row(LISTENS_ROW + pattern)
        self.routes.remove(pattern, receiver)
        if pattern not in self.routes or self.others is not None:
            self._topics.unsubscribe(pattern)

    def remove(self, receiver: R) -> None:
        """Stop routing to this ended receiver. Its owner settles the rest of its queue."""
        self.ledger.rankings.ended(receiver.number, receiver.key, receiver.queue.seq)
        if receiver.is_durable:
            self.durables -= 1
        for pattern in receiver.subscriptions:
            self.unsubscribe(receiver, pattern)
        receiver.subscriptions.clear()

    def _note_overflow(self, receiver: R, reason: Reason) -> None:
        """Log an overflow once per queue, until the queue has been empty."""
        queue = receiver.queue
        if record_of(queue.records, _Overflow) is None:
            queue.records = with_record(queue.records, _Overflow())
            self._notices.report(FULL, receiver.key, reason.value)


class _Overflow(QueueRecord):
    """The record of a queue that has refused a message."""

    __slots__ = ()


def _fields(publish: Publish[R]) -> RequestFields:
    """Return the request fields to store together with the message."""
    if publish.step is not None:
        return publish.step.fields
    message, leave_out = publish.message, publish.leave_out
    if message.records is None:
        return NO_FIELDS
    receivers = [each for each in publish.receivers if each is not leave_out]
    fields: dict[str, bytes] = {}
    for record in message.records:
        fields.update(record.fields_for(message, receivers))
    return fields
