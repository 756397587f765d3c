"""Holds channels back for operators, and releases them."""

from typing import Final

from holdfast.bayeux.session import Session
from holdfast.bayeux.state.system_events import SystemEvents
from holdfast.bayeux.wire.command_refused import ILLEGAL, CommandRefused
from holdfast.delivery.basics.channels import Channels, Kind
from holdfast.delivery.basics.node import Node
from holdfast.delivery.basics.notices import CHANNEL_FREE, CHANNEL_HELD, Notices
from holdfast.delivery.guard.holds import ChannelHold, Guard
from holdfast.delivery.ports.journal_port import DeliveryJournal
from holdfast.delivery.routing.hub import Hub

ALERT: Final = "/sys/alert"
TOO_MANY: Final = "resource.exhaust"


class ChannelHolds:
    """Holds and releases channels, and informs the journal, the store and operators."""

    def __init__(
        self,
        guard: Guard,
        hub: Hub[Session],
        *,
        channels: Channels,
        node: Node,
        journal: DeliveryJournal,
        notices: Notices,
        events: SystemEvents,
    ) -> None:
        self._guard = guard
        self._hub = hub
        self._channels = channels
        self._node = node
        self._journal = journal
        self._notices = notices
        self._events = events

    def hold(self, name: str, reason: str, who: str, until_ms: int | None = None) -> None:
        """Hold a channel back until its release, or until `until_ms`. Raises `CommandRefused`."""
        channel = self._channels.get(name)
        if channel is None or channel.kind is not Kind.BROADCAST or channel.is_wild:
            raise CommandRefused(
                ILLEGAL, f"{name} is not a single channel that clients can publish on"
            )
        held = ChannelHold(self._node.now_ms(), reason, who, until_ms)
        if held.is_over(held.since):
            raise CommandRefused(ILLEGAL, "until: this time is in the past")
        if not self._guard.hold(name, held):
            raise CommandRefused(TOO_MANY, "too many channels are held back: release one first")
        self._hub.store.save_channel_hold(name, held)
        self._journal.held("operator", channel=name)
        self._notices.report(CHANNEL_HELD, name, f"{reason} ({who})" if reason else who)

    def held_by_guard(self, name: str, reason: str) -> None:
        """Log that the guard holds a channel, and alert operators."""
        self._notices.report(CHANNEL_HELD, name, reason)
        self._alert("channel held back", name, reason)

    def release(self, name: str, by: str, reason: str) -> bool:
        """Release a held channel. Returns False if it was not held."""
        if not self._guard.release(name):
            return False
        self._hub.store.release(name)
        self._journal.released(by, channel=name)
        self._notices.report(CHANNEL_FREE, name, reason)
        # Entries of former subscribers go with their next connect.
        for session in self._hub.routes.receivers(self._channels.named(name)):
            if session.queue.count:
                self._hub.flow_again(session)
        return True

    def release_by_server(self, name: str, by: str, reason: str) -> None:
        """Release a channel without an operator's request, and alert operators."""
        if self.release(name, by, reason):
            self._alert("channel flows again", name, reason)

    def tick(self, wall_ms: int) -> None:
        """Release the channels whose hold has run out."""
        if self._guard.held:
            for name in self._guard.ended_holds(wall_ms):
                self.release_by_server(name, "until", "its hold has ended")

    def _alert(self, kind: str, name: str, reason: str) -> None:
        data = {"kind": kind, "channel": name, "reason": reason}
        self._events.publish({"channel": ALERT, "data": data})
