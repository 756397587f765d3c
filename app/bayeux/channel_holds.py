"""Channels that are held back: by operators, and their release."""

from typing import Final

from holdfast.bayeux.grammar import ILLEGAL, CommandRefused
from holdfast.bayeux.server_state import ServerState
from holdfast.bayeux.system_events import publish_event
from holdfast.delivery.channels import Kind
from holdfast.delivery.guard import ChannelHold
from holdfast.delivery.notices import CHANNEL_FREE, CHANNEL_HELD

ALERT: Final = "/sys/alert"
TOO_MANY: Final = "resource.exhaust"


def hold_channel(
    state: ServerState, name: str, reason: str, who: str, until_ms: int | None = None
) -> None:
    """Hold a channel back until it is released, or until `until_ms`. Raises `CommandRefused`."""
    channel = state.channels.get(name)
    if channel is None or channel.kind is not Kind.BROADCAST or channel.is_wild:
        raise CommandRefused(ILLEGAL, f"{name} is not a single channel that clients can publish on")
    held = ChannelHold(state.node.now_ms(), reason, who, until_ms)
    if held.is_over(held.since):
        raise CommandRefused(ILLEGAL, "until: this time is in the past")
    if not state.guard.hold(name, held):
        raise CommandRefused(TOO_MANY, "too many channels are held back: release one first")
    state.store.save_channel_hold(name, held)
    state.journal.held("operator", channel=name)
    state.notices.report(CHANNEL_HELD, name, f"{reason} ({who})" if reason else who)


def held_by_guard(state: ServerState, name: str, reason: str) -> None:
    """Log that the guard holds a channel, and alert operators."""
    state.notices.report(CHANNEL_HELD, name, reason)
    _alert(state, "channel held back", name, reason)


def release_channel(state: ServerState, name: str, by: str, reason: str) -> bool:
    """Release a held channel; return False if it was not held."""
    if not state.guard.release(name):
        return False
    state.store.release(name)
    state.journal.released(by, channel=name)
    state.notices.report(CHANNEL_FREE, name, reason)
    # A former subscriber's entries of the channel go with its next connect.
    for session in state.routes.receivers(state.channels.named(name)):
        if session.queue.count:
            state.hub.flow_again(session)
    return True


def release_by_server(state: ServerState, name: str, by: str, reason: str) -> None:
    """Release a channel without an operator's doing, and alert operators."""
    if release_channel(state, name, by, reason):
        _alert(state, "channel flows again", name, reason)


def release_what_is_over(state: ServerState, now_ms: int) -> None:
    """Release the channels that were to be held until now."""
    if state.guard.held:
        for name in state.guard.over(now_ms):
            release_by_server(state, name, "until", "its hold has ended")


def _alert(state: ServerState, kind: str, name: str, reason: str) -> None:
    data = {"kind": kind, "channel": name, "reason": reason}
    publish_event(state, {"channel": ALERT, "data": data})
