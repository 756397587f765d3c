"""The erasure of one topic, in one turn or over several."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice

from holdfast.bayeux.session import Session
from holdfast.bayeux.sessions.owner import SessionOwner
from holdfast.bayeux.state.subscription_details import qos_of_subscriptions
from holdfast.bayeux.state.subscriptions import Subscriptions
from holdfast.delivery.basics.channels import Channels
from holdfast.delivery.basics.json_text import to_json
from holdfast.delivery.basics.node import Node
from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.letters.exempt import leave_no_letter
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.storing import NO_FIELDS, PersistOutcome, RequestStep
from holdfast.delivery.routing.hub import Hub
from holdfast.delivery.routing.publishes import Publish
from holdfast.delivery.settling.undelivered import Undelivered
from holdfast.delivery.topics.configured import ErasureIds, Topic
from holdfast.delivery.topics.counting import is_erased

# How many sessions are looked at between two checks of the turn budget.
_MOST = 100


class Erasure:
    """Erases a topic: its subscriptions, its history and, if forced, messages waiting in queues.

    The topic exists until all exact subscriptions are gone. Sessions that asked for it are notified
    when it can bring them no more messages.

    Args:
        named: The ids that the home of the channel has given; None if this is the home.
        receivers: All receivers with queues, shared queues first, because these dispatch
            messages to sessions. A message that a session requeues before it was searched
            is discarded when it enters its shared queue.
    """

    def __init__(
        self,
        topic: Topic,
        receivers: Iterator[Session],
        *,
        is_forced: bool,
        named: ErasureIds | None,
        channels: Channels,
        subscriptions: Subscriptions,
        hub: Hub[Session],
        node: Node,
        owner: SessionOwner,
        undelivered: Undelivered[Session],
    ) -> None:
        self._channels = channels
        self._subscriptions = subscriptions
        self._hub = hub
        self._node = node
        self._owner = owner
        self._undelivered = undelivered
        self._topic = topic
        self._is_forced = is_forced
        self._named = named
        # Sessions with matching patterns, which are notified when it ends.
        self._others: list[Session] = []
        # The receivers whose queues have not been searched yet.
        self._left = receivers
        # Does the next piece of work. Returns whether any is left.
        self._step: Callable[[float], bool] = self._unsubscribe

    def go_on(self, now: float) -> bool:
        """Do one piece of work. Returns whether any is left."""
        return self._step(now)

    def _unsubscribe(self, now: float) -> bool:
        """Remove some exact subscriptions. With the last ones, erase the topic."""
        name = self._topic.name
        subscribers, unsubscribed = self._hub.routes.subscribers(name), list[Session]()
        for session in subscribers[:_MOST]:
            is_notified = self._notifies(session)
            self._subscriptions.lose(session, name)
            self._owner.note(session, now)
            if is_notified:
                is_covered = session.subscription(name) is not None
                (self._others if is_covered else unsubscribed).append(session)
        named = self._named or ErasureIds(self._node.stamp(), self._node.stamp())
        # In the same step as their records, from which the subscription is already missing.
        self._notify(unsubscribed, {"subscription": name}, named.unsubscribed)
        if len(subscribers) > _MOST:
            return True
        self._erase(named)
        if not (self._is_forced and self._topic.queued):
            return False
        self._step = self._discard
        return True

    def _notifies(self, session: Session) -> bool:
        """Whether to notify the session: it understands states and subscribed with `notify`."""
        pattern = session.subscription(self._topic.name)
        qos = qos_of_subscriptions(session).get(pattern or "")
        return session.terms is not None and (qos is None or qos.notify)

    def _erase(self, named: ErasureIds) -> None:
        topic = self._topic
        channel = self._channels.named(topic.name)
        notified = set(self._others)
        self._others += [
            session
            for session in self._hub.routes.receivers(channel)
            if session not in notified and self._notifies(session)
        ]
        if self._is_forced:
            topic.discards_before = named.erased
        self._hub.histories.erase(topic.name)
        topic.erase(named, is_forced=self._is_forced)
        self._notify(self._others, {}, named.erased)

    def _notify(self, sessions: Sequence[Session], fields: dict[str, str], id: int) -> None:
        """Deliver the event that the topic was erased. Absent sessions get it later."""
        living = [session for session in sessions if not session.is_gone]
        if not living:
            return
        delivery = {"state": "ERASED", **fields}
        event = {"channel": self._topic.name, "data": None, "ext": {"delivery": delivery}}
        message = Message(to_json(event), id=id, channel=self._topic.name)
        # The event is of momentary interest, and no subscription matches it any longer.
        leave_no_letter(message)
        message.is_direct = True
        publish: Publish[Session] = Publish(self._channels.named(self._topic.name))
        publish.message = message
        publish.addressed, publish.is_subscribable = living, False
        # Unlike `done`, it is also called when the outcome of an event was UNKNOWN at first.
        publish.step = RequestStep(NO_FIELDS, partial(self._kept, living, message))
        outcome = self._hub.publish(publish)
        if outcome is PersistOutcome.REFUSED:
            self._kept(living, message, outcome)

    def _kept(self, sessions: Sequence[Session], message: Message, outcome: PersistOutcome) -> None:
        """If the store refuses the event, notify the sessions that are present."""
        if outcome is PersistOutcome.REFUSED:
            message.is_durable = False
            living = [session for session in sessions if not session.is_gone]
            self._hub.publish_to(living, message)

    def _discard(self, _: float) -> bool:
        """Discard the topic's messages in some queues."""
        some = list(islice(self._left, _MOST))
        for session in some:
            queue = session.queue
            gone = (
                [each for each in queue.messages() if is_erased(each)] if queue.has_counted else ()
            )
            if gone:
                queue.remove_messages(gone)
                self._undelivered.clear_out(session, gone, Reason.ERASED)
        return len(some) == _MOST
