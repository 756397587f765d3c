"""Holds a channel when its receivers are broken, but not when its messages are poison.

Operators hold channels, too; these are not probed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from holdfast.delivery.channel_verdicts import ChannelVerdicts, GuardLimits
from holdfast.delivery.messages import Message
from holdfast.delivery.probe import Probe

__all__ = ["ChannelHold", "Guard", "GuardLimits"]

# Who holds a channel, unless an operator does.
GUARD: Final = "guard"


@dataclass(frozen=True, slots=True)
class ChannelHold:
    """Why, since when and until when (ms since 1970) a channel is held, and by whom."""

    since: int
    reason: str
    who: str = GUARD
    until: int | None = None

    def is_over(self, now_ms: int) -> bool:
        return self.until is not None and now_ms >= self.until


class Guard:
    """Knows the held channels, and recent verdicts on the others."""

    def __init__(self, limits: GuardLimits | None = None) -> None:
        self._limits = limits or GuardLimits()
        self._half_s = self._limits.window_s / 2
        # In order of the beginning of their windows.
        self._hearings: dict[str, ChannelVerdicts] = {}
        self._held: dict[str, ChannelHold] = {}
        self.held = MappingProxyType(self._held)
        self._retrials: dict[str, Probe] = {}
        self.retrials: Mapping[str, Probe] = MappingProxyType(self._retrials)
        # `taken` is called until then. It need not be while no receiver refuses anything and no
        # channel is probed.
        self.watched_until = 0.0

    @property
    def window_s(self) -> float:
        """How long verdicts count."""
        return self._limits.window_s

    def watch(self, now: float) -> None:
        """Learn from now on what receivers take, for as long as verdicts count."""
        self.watched_until = max(self.watched_until, now + self._limits.window_s)

    def taken(self, messages: Sequence[Message], person: str, now: float) -> Sequence[str]:
        """A receiver took these messages; returns held channels that have proved to work again.

        Channels without refusals are not tracked.
        """
        passing = []
        for message in messages:
            channel = message.channel
            if channel in self._hearings:
                self._hearing(channel, now).takes(person, message.sender, message.id)
            elif self.is_tried(message):
                passing.append(channel)
        return passing

    def refused(
        self, message: Message, person: str, now: float, now_ms: int, *, knew: bool = True
    ) -> bool:
        """A receiver refused the message; returns whether to call `hold_channel`.

        `knew` says that it had accepted a message of the publisher before.
        """
        channel = message.channel
        if not self._limits.is_on:
            return False
        if channel in self._held:
            return False
        hearing = self._hearing(channel, now)
        hearing.refuses(person, message.sender, message.id, now, now_ms, knew=knew)
        return len(self._held) < self._limits.channels and hearing.is_suspicious(now)

    def hold_channel(
        self, channel: str, reached: Iterable[str], now: float, now_ms: int
    ) -> ChannelHold | None:
        """Hold the channel if most of the receivers concerned, or of those with verdicts, refuse.

        Receivers that only ack batches are counted here, so that the usual case costs nothing.
        """
        hearing = self._hearing(channel, now)
        reason = hearing.convicts(reached, now)
        if not reason:
            return None
        del self._hearings[channel]
        self._retrials[channel] = Probe(self._limits, now, hearing.refused_publishers)
        held = self._held[channel] = ChannelHold(now_ms, reason)
        return held

    def restore(self, channel: str, held: ChannelHold, now: float) -> bool:
        """Restore a stored hold; return False if this server must not hold the channel."""
        is_its_own = held.who == GUARD
        if is_its_own and not self._limits.is_on:
            return False
        self._held[channel] = held
        if is_its_own:
            self._retrials[channel] = Probe(self._limits, now)
        return True

    def hold(self, channel: str, held: ChannelHold) -> bool:
        """Hold a channel for an operator; return False if too many are held."""
        if channel not in self._held and len(self._held) >= self._limits.channels:
            return False
        self.release(channel)
        self._held[channel] = held
        return True

    def over(self, now_ms: int) -> list[str]:
        """Return the channels that were to be held until now."""
        return [channel for channel, held in self._held.items() if held.is_over(now_ms)]

    def is_held(self, channel: str) -> bool:
        return channel in self._held

    def is_tried(self, message: Message) -> bool:
        """Return whether this is the latest probe of its channel."""
        retrial = self._retrials.get(message.channel)
        return retrial is not None and retrial.message is message

    def failed_again(self, message: Message, now: float) -> None:
        """The probe of its channel was refused."""
        self._retrials[message.channel].failed(message.sender, now)

    def published(self, channel: str, publisher: str, now: float) -> None:
        """Something was published on a held channel."""
        retrial = self._retrials.get(channel)
        if retrial is not None:
            retrial.hear_of(publisher, now)

    def release(self, channel: str) -> bool:
        """Release the channel and reset its counts; return False if it was not held."""
        self._hearings.pop(channel, None)
        retrial = self._retrials.pop(channel, None)
        if retrial is not None:
            retrial.end()
        return self._held.pop(channel, None) is not None

    def _hearing(self, channel: str, now: float) -> ChannelVerdicts:
        hearing = self._hearings.get(channel)
        if hearing is not None and now - hearing.since < self._half_s:
            return hearing
        if hearing is None:
            hearing = ChannelVerdicts(self._limits, now)
            if len(self._hearings) >= self._limits.channels:
                del self._hearings[next(iter(self._hearings))]
        else:
            del self._hearings[channel]
            hearing.turn(now)
        self._hearings[channel] = hearing
        return hearing
