"""Subscriptions with `newestOnly`: of new messages, only the last of a channel counts."""

from operator import attrgetter
from typing import TYPE_CHECKING

from holdfast.bayeux.session import Session
from holdfast.bayeux.wire.subscribe_qos import PLAIN
from holdfast.delivery.basics.counters import Reason
from holdfast.delivery.settling.undelivered import Undelivered

if TYPE_CHECKING:
    from holdfast.delivery.messages.message import Message

_by_id = attrgetter("id")


def drop_outdated(session: Session, undelivered: Undelivered[Session]) -> None:
    """Discard new messages that later ones of such subscriptions make superfluous."""
    qos = session.subscription_qos or {}
    newest: dict[str, Message] = {}
    outdated: list[Message] = []
    is_of_such: dict[str, bool] = {}
    for message in session.queue.new:
        channel = message.channel
        if channel not in is_of_such:
            pattern = session.subscription(channel) or ""
            is_of_such[channel] = qos.get(pattern, PLAIN).newest_only
        is_for_all = message.is_routed and not message.addressed and message.refusals is None
        if not (is_of_such[channel] and is_for_all):
            continue
        other = newest.setdefault(channel, message)
        if other is not message:
            first, last = sorted((other, message), key=_by_id)
            newest[channel] = last
            outdated.append(first)
    if outdated:
        session.queue.take_away(outdated)
        undelivered.discard(session, outdated, Reason.OUTDATED)
        undelivered.waiting_places.move_on_to(session)
