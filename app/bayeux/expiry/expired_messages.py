"""Expired messages leave histories and the queues in which they wait.

So do messages that a later one supersedes, by `newestOnly`. `Undelivered` settles all of them.
"""

from collections.abc import Callable
from operator import attrgetter

from holdfast.bayeux.session import Session
from holdfast.bayeux.state.subscription_details import qos_of_subscriptions
from holdfast.bayeux.wire.subscribe_qos import PLAIN
from holdfast.delivery.basics.node import Node
from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.basics.timers import Timed, Timers
from holdfast.delivery.messages.message import Message, release
from holdfast.delivery.routing.histories import Histories
from holdfast.delivery.settling.undelivered import Undelivered
from holdfast.delivery.shared_queues.work import is_work

# How many entries one tick looks at, about 3 us each. The rest follows in the next tick.
_MOST = 5000
# Looking at this many entries costs as much as removing one message.
_ENTRIES = 64
# How many expired messages are removed to make room for a new one.
_FEW = 16

_by_id = attrgetter("id")


class _ExpiryTimer(Timed):
    """The timers' entry for the expiring messages of one session."""

    __slots__ = ("session",)

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session


class MessageExpiry:
    """Looks at a queue when the lifetime of a message in it ends, and when the queue is full."""

    def __init__(
        self,
        undelivered: Undelivered[Session],
        histories: Histories,
        node: Node,
        log_fault: Callable[[Session], None],
    ) -> None:
        self._undelivered = undelivered
        self._histories = histories
        self._node = node
        self._log_fault = log_fault
        self._timers: Timers[_ExpiryTimer] = Timers()
        # By session, while messages with a lifetime wait.
        self._timer_of: dict[Session, _ExpiryTimer] = {}

    def watch(self, session: Session) -> None:
        """Watch the session, because a message with a lifetime waits in its queue."""
        expiring = session.queue.expiring
        if expiring and session.takes_messages:
            timer = self._timer_of.get(session)
            if timer is None:
                timer = self._timer_of[session] = _ExpiryTimer(session)
            self._timers.ring_by(timer, expiring[0].expires_ms / 1000)

    def begin(self, session: Session) -> None:
        """Watch a restored session, whose queue may contain expired messages."""
        self._undelivered.expire_waiting(session)
        self.watch(session)

    def forget(self, session: Session) -> None:
        """Stop watching a session without waiting messages."""
        timer = self._timer_of.pop(session, None)
        if timer is not None:
            self._timers.drop(timer)

    def tick(self, wall_ms: int) -> None:
        """Remove messages that have expired since the last tick.

        `wall_ms` is the wall clock's time, because lifetimes also pass while the server is down.
        """
        self._histories.forget_expired(wall_ms, _MOST)
        left, now = _MOST, wall_ms / 1000
        while left > 0 and (rung := self._timers.ring(now, most=1)):
            session = rung[0].session
            del self._timer_of[session]
            left -= 1 + (len(session.queue.new) + len(session.queue.returned)) // _ENTRIES
            try:
                left -= self._undelivered.expire_waiting(session, max(left, 1))
            except BaseException:
                self._log_fault(session)
            self.watch(session)

    def make_room_for(self, session: Session, message: Message) -> bool:
        """Queue the message in a full queue by removing expired ones.

        If the message itself has expired, it is settled. Returns False if the queue must refuse it.
        """
        if session.drops_outdated:
            drop_outdated(session, self._undelivered)
            if session.queue.offer(message) is None:
                return True
        while self._undelivered.expire_waiting(session, _FEW):
            if session.queue.offer(message) is None:
                return True
        if 0 < message.expires_ms <= self._node.now_ms():
            self._undelivered.expire(session, [message])
            release([message])
            return True
        return False


def drop_outdated(session: Session, undelivered: Undelivered[Session]) -> None:
    """Discard new messages that were superseded by later ones of such subscriptions."""
    qos = qos_of_subscriptions(session)
    newest: dict[str, Message] = {}
    outdated: list[Message] = []
    is_of_such: dict[str, bool] = {}
    for message in session.queue.new:
        channel = message.channel
        if channel not in is_of_such:
            pattern = session.subscription(channel) or ""
            is_of_such[channel] = qos.get(pattern, PLAIN).newest_only
        is_for_all = message.is_routed and not message.addressed and not is_work(message)
        if not (is_of_such[channel] and is_for_all):
            continue
        other = newest.setdefault(channel, message)
        if other is not message:
            first, last = sorted((other, message), key=_by_id)
            newest[channel] = last
            outdated.append(first)
    if outdated:
        session.queue.remove_messages(outdated)
        undelivered.discard(session, outdated, Reason.OUTDATED)
        undelivered.waiting_places.assign_to(session)
