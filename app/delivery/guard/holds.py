"""The guard: holds a channel when its receivers are broken, but not when its messages are poison.

Only channels whose rule sets `guard` are guarded. Operators may hold any channel; those channels
are not probed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from holdfast.delivery.guard.channel_verdicts import ChannelVerdicts, GuardLimits
from holdfast.delivery.guard.probe import Probe
from holdfast.delivery.messages.message import Message

__all__ = ["ChannelHold", "Guard", "GuardLimits"]

# The holder of a channel that no operator holds.
GUARD: Final = "guard"


@dataclass(frozen=True, slots=True)
class ChannelHold:
    """Who holds a channel, why, since when and until when (ms since 1970)."""

    since: int
    reason: str
    who: str = GUARD
    until: int | None = None

    def is_over(self, now_ms: int) -> bool:
        return self.until is not None and now_ms >= self.until


class Guard:
    """Knows the held channels, and the recent verdicts on the others.

    Args:
        guards: Returns whether the channel is guarded.
        is_used: Whether any channel is.
        on_change: Called with each channel that is held or released.
    """

    def __init__(
        self,
        guards: Callable[[str], bool],
        limits: GuardLimits,
        *,
        is_used: bool = True,
        on_change: Callable[[str, bool], None] | None = None,
    ) -> None:
        self._guards = guards
        self.is_used = is_used
        self._limits = limits
        self._half_s = self._limits.window_s / 2
        # In the order in which their windows began.
        self._verdicts: dict[str, ChannelVerdicts] = {}
        self._held: dict[str, ChannelHold] = {}
        self.held = MappingProxyType(self._held)
        self._probes: dict[str, Probe] = {}
        self.probes: Mapping[str, Probe] = MappingProxyType(self._probes)
        self._on_change = on_change
        # Callers must call `taken` until this time. While no receiver refuses anything and no
        # channel is probed, they need not.
        self.watched_until = 0.0

    def watch(self, now: float) -> None:
        """Record accepted messages from now on, for as long as verdicts count."""
        self.watched_until = max(self.watched_until, now + self._limits.window_s)

    def taken(self, messages: Sequence[Message], person: str, now: float) -> Sequence[str]:
        """Record that a receiver accepted these messages. Returns held channels that work again.

        Channels without refusals are not tracked.
        """
        passing = []
        for message in messages:
            channel = message.channel
            if channel in self._verdicts:
                self._verdicts_on(channel, now).takes(person, message.sender, message.id)
            elif self.is_probe(message):
                passing.append(channel)
        return passing

    def refused(
        self, message: Message, person: str, now: float, now_ms: int, *, knew: bool = True
    ) -> bool:
        """Record that a receiver refused the message. Returns whether to call `hold_channel`.

        `knew` says whether it had accepted a message of the publisher before.
        """
        channel = message.channel
        if channel in self._held or not self._guards(channel):
            return False
        self.watch(now)
        verdicts = self._verdicts_on(channel, now)
        verdicts.refuses(
            person, message.sender, message=message.id, now=now, now_ms=now_ms, knew=knew
        )
        return len(self._held) < self._limits.channels and verdicts.is_suspicious(now)

    def hold_channel(
        self, channel: str, reached: Iterable[str], now: float, now_ms: int
    ) -> ChannelHold | None:
        """Hold the channel if most of its receivers refuse. Returns the hold, or None.

        It counts receivers with verdicts, and `reached`: the persons that a hold would affect.
        Callers look for those only now, so the common case costs nothing.
        """
        verdicts = self._verdicts_on(channel, now)
        reason = verdicts.reason_to_hold(reached, now)
        if not reason:
            return None
        del self._verdicts[channel]
        self._probes[channel] = Probe(self._limits, now, verdicts.refused_publishers)
        held = ChannelHold(now_ms, reason)
        self._enter(channel, held)
        return held

    def restore(self, channel: str, held: ChannelHold, now: float) -> bool:
        """Restore a stored hold. Returns False if this server must not hold the channel."""
        is_its_own = held.who == GUARD
        if is_its_own and not self._guards(channel):
            return False
        self._enter(channel, held)
        if is_its_own:
            self._probes[channel] = Probe(self._limits, now)
        return True

    def hold(self, channel: str, held: ChannelHold) -> bool:
        """Hold a channel for an operator. Returns False if too many channels are held."""
        if channel not in self._held and len(self._held) >= self._limits.channels:
            return False
        self.release(channel)
        self._enter(channel, held)
        return True

    def _enter(self, channel: str, held: ChannelHold) -> None:
        self._held[channel] = held
        if self._on_change is not None:
            self._on_change(channel, True)

    def ended_holds(self, now_ms: int) -> list[str]:
        """Return the channels whose hold has run out. The caller must release them."""
        return [channel for channel, held in self._held.items() if held.is_over(now_ms)]

    def is_held(self, channel: str) -> bool:
        return channel in self._held

    def is_probe(self, message: Message) -> bool:
        """Return whether the message is the latest probe of its channel."""
        probe = self._probes.get(message.channel)
        return probe is not None and probe.message is message

    def probe_failed(self, message: Message, now: float) -> None:
        """Record that a receiver refused the probe of this channel."""
        self.watch(now)
        self._probes[message.channel].failed(message.sender, now)

    def published(self, channel: str, publisher: str, now: float) -> None:
        """Record a publish to a held channel."""
        probe = self._probes.get(channel)
        if probe is not None:
            probe.hear_of(publisher, now)

    def release(self, channel: str) -> bool:
        """Release the channel and reset its counts. Returns False if it was not held."""
        self._verdicts.pop(channel, None)
        probe = self._probes.pop(channel, None)
        if probe is not None:
            probe.end()
        was_held = self._held.pop(channel, None) is not None
        if was_held and self._on_change is not None:
            self._on_change(channel, False)
        return was_held

    def _verdicts_on(self, channel: str, now: float) -> ChannelVerdicts:
        verdicts = self._verdicts.get(channel)
        if verdicts is not None and now - verdicts.since < self._half_s:
            return verdicts
        if verdicts is None:
            verdicts = ChannelVerdicts(self._limits, now)
            if len(self._verdicts) >= self._limits.channels:
                del self._verdicts[next(iter(self._verdicts))]
        else:
            del self._verdicts[channel]
            verdicts.turn(now)
        self._verdicts[channel] = verdicts
        return verdicts
