"""Delivers messages that other shards have accepted to the receivers of this one."""

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.bayeux.session import Session
from holdfast.bayeux.state.server_state import ServerState
from holdfast.delivery.basics.channels import Kind
from holdfast.delivery.messages.crossing import spared_by
from holdfast.delivery.messages.message import Message
from holdfast.delivery.routing.selections import Candidate


class Arrived(NamedTuple):
    """A message of another shard, and its receivers here."""

    message: Message
    receivers: Sequence[Session]
    # The durable ones: the store must have the message for these before it is shown.
    keys: Sequence[str]


class FromOthers:
    """Finds receivers, and shows messages to them.

    Which receivers get a message is decided once: who subscribes later has not missed it.
    """

    def __init__(self, state: ServerState) -> None:
        self._state = state

    def is_wanted(self, channel: str) -> bool:
        """Return whether messages of the channel have receivers here."""
        found = self._state.channels.get(channel)
        return (
            found is not None
            and found.kind is Kind.BROADCAST
            and bool(self._state.routes.receivers(found))
        )

    def arrived(self, message: Message, *, is_durable: bool) -> Arrived | None:
        """Return the receivers of a message; None if there are none."""
        state = self._state
        channel = state.channels.get(message.channel)
        if channel is None or channel.kind is not Kind.BROADCAST:
            return None
        receivers: Sequence[Session] = state.routes.receivers(channel)
        if receivers and state.routes.selecting:
            receivers = state.routes.selecting_receivers(channel, Candidate.of(message))
        if message.records is not None:
            spared = spared_by(message)
            receivers = [each for each in receivers if each.key not in spared]
        if not receivers:
            return None
        if message.linger_s is None:
            message.linger_s = state.rules.of(channel).lazy_timeout_s
        keys = [each.key for each in receivers if each.is_durable] if is_durable else ()
        message.is_durable = bool(keys)
        return Arrived(message, receivers, keys)

    def show(self, arrived: Arrived) -> None:
        """Deliver a message, which the store has for its durable receivers."""
        self._state.hub.show_arrived(arrived.message, arrived.receivers, len(arrived.keys))
