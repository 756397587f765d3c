"""Delivers messages that other shards have accepted to the receivers of this one."""

from typing import TYPE_CHECKING

from holdfast.bayeux.publish.answering_others import AnsweringOthers
from holdfast.bayeux.publish.tap import Arrived, Tap
from holdfast.bayeux.state.server_state import ServerState
from holdfast.delivery.basics.channels import Channel, Kind
from holdfast.delivery.basics.ignoring import ignore
from holdfast.delivery.letters.exempt import leave_no_letter
from holdfast.delivery.messages.crossing import spared_by
from holdfast.delivery.messages.message import Message
from holdfast.delivery.requests.of_others import far_request_in
from holdfast.delivery.routing.publishes import NextAtOnce
from holdfast.delivery.routing.selections import Candidate
from holdfast.delivery.topics.counting import count_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.bayeux.session import Session
    from holdfast.delivery.messages.marks import BatchMark


class FromOthers:
    """Finds receivers, and shows messages to them.

    Which receivers get a message is decided once: who subscribes later has not missed it. Receivers
    that need no store may get it before the others.
    """

    def __init__(self, state: ServerState, requests: AnsweringOthers) -> None:
        self._state, self._requests = state, requests
        self.tap = Tap()
        # By session, how many messages the store is about to have for it that are not shown yet.
        self._coming: dict[str, int] = {}

    def hear(self, id: int) -> None:
        """Let ids that this shard gives from now on be above one that another shard has given."""
        self._state.node.hear(id)

    def is_wanted(self, channel: str) -> bool:
        """Return whether messages of the channel have receivers here, or are recorded."""
        found = self._state.channels.get(channel)
        return (
            found is not None
            and found.kind is Kind.BROADCAST
            and (bool(self._state.routes.receivers(found)) or self.tap.wants(channel))
        )

    def arrived(self, message: Message, *, is_durable: bool, is_new: bool = True) -> Arrived | None:
        """Return the receivers of a message; None if no session gets or reads it.

        Args:
            is_new: Whether those that need no store have not got it yet.
        """
        state = self._state
        channel = state.channels.get(message.channel)
        if channel is None or channel.kind is not Kind.BROADCAST:
            return None
        receivers = self._receivers_of(message, channel, is_new=is_new)
        is_recorded = self.tap.wants(channel.name)
        if not receivers and not is_recorded:
            return None
        if channel.is_system:
            leave_no_letter(message)
        if state.topics.are_used:
            self._count(message)
        if message.linger_s is None:
            message.linger_s = state.rules.of(channel).lazy_timeout_s
        durable: Sequence[str] = ()
        if state.hub.durables:
            durable = [each.key for each in receivers if each.is_durable]
        keys = durable if is_durable else ()
        message.is_durable = bool(keys)
        if message.records is not None:
            self._requests.arrived(message, is_kept=bool(keys))
        arrived = Arrived(
            message, receivers, keys, is_durable=is_durable, has_durable=bool(durable)
        )
        if is_recorded:
            self.tap.comes(arrived)
        return arrived

    def _receivers_of(
        self, message: Message, channel: Channel, *, is_new: bool
    ) -> "Sequence[Session]":
        routes = self._state.routes
        receivers: Sequence[Session] = routes.receivers(channel)
        if receivers and routes.selecting:
            receivers = routes.selecting_receivers(channel, Candidate.of(message))
        if message.records is not None:
            spared = spared_by(message)
            receivers = [each for each in receivers if each.key not in spared]
        if is_new:
            return receivers
        durable = [each for each in receivers if each.is_durable]
        return [*durable, *self.tap.latecomers(message.id)]

    def _count(self, message: Message) -> None:
        """Count the queues that get the message, for the home of its topic."""
        topic = self._state.topics.far(message.channel)
        if topic is not None and far_request_in(message) is None:
            count_for(topic, message)

    def hand_overs(self, coming: "Sequence[Arrived]") -> "Mapping[str, BatchMark]":
        """Return what sessions will get at once when these messages are shown, if nothing changes.

        These are sessions that wait for messages and have none, nor get earlier ones.
        """
        found = NextAtOnce(self._state.guard.held)
        for each in coming:
            if each.keys:
                found.add(each.message, each.receivers, but=self._coming)
        return found.hand_overs

    def expect(self, coming: "Sequence[Arrived]") -> None:
        """Take note that the store is asked to have these messages, before they are shown."""
        expected = self._coming
        for each in coming:
            for key in each.keys:
                expected[key] = expected.get(key, 0) + 1

    def expect_no_more(self, coming: "Sequence[Arrived]") -> None:
        """Take note that these are shown now, or that the store does not have them."""
        expected = self._coming
        for each in coming:
            for key in each.keys:
                left = expected.pop(key) - 1
                if left:
                    expected[key] = left

    def show_at_once(self, arrived: Arrived) -> None:
        """Deliver a message to its receivers that need no store. `show` delivers it to the rest."""
        receivers = arrived.receivers
        if len(receivers) == len(arrived.keys):
            return
        first = [each for each in receivers if not each.is_durable]
        if first:
            arrived.receivers = [each for each in receivers if each.is_durable]
            self._state.hub.show_arrived(arrived.message, first, 0)

    def show(self, arrived: Arrived) -> None:
        """Deliver a message, which the store has for its durable receivers."""
        if arrived.keys:
            self.expect_no_more((arrived,))
        message, kept = arrived.message, len(arrived.keys) + len(arrived.latecomers)
        if arrived.latecomers:
            # These are copies, as from a history: see `Hub.include`.
            self._state.store.keep(message.initial(), arrived.latecomers, ignore)
            message.is_durable = True
        self._state.hub.show_arrived(message, arrived.receivers, kept)
        if self.tap.wants(message.channel):
            self.tap.shown(arrived)
