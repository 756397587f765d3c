"""Holds a channel back when its receivers are broken, and not when its messages are poison."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from app.delivery.hearing import GuardLimits, Hearing
from app.delivery.messages import Message
from app.delivery.retrial import Retrial

__all__ = ["Guard", "GuardLimits", "Held"]


@dataclass(frozen=True, slots=True)
class Held:
    """Since when (ms since 1970) and why a channel is held back."""

    since: int
    reason: str


class Guard:
    """Knows the channels that are held back, and what was lately said on the others."""

    def __init__(self, limits: GuardLimits | None = None) -> None:
        self._limits = limits or GuardLimits()
        self._half_s = self._limits.window_s / 2
        # The channel whose window began first stands first.
        self._hearings: dict[str, Hearing] = {}
        self._held: dict[str, Held] = {}
        self.held = MappingProxyType(self._held)
        self._retrials: dict[str, Retrial] = {}
        self.retrials: Mapping[str, Retrial] = MappingProxyType(self._retrials)

    @property
    def window_s(self) -> float:
        """How long it matters what was said."""
        return self._limits.window_s

    def taken(self, messages: Sequence[Message], person: str, now: float) -> Sequence[str]:
        """A receiver took these; the channels that were held back and are shown to pass again.

        Of channels on which nobody refused anything nothing is noted.
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
        """A receiver refused it; whether its channel looks so bad that `hold` must be asked.

        It `knew` the publisher, if it had taken something of that one before.
        """
        channel = message.channel
        if not self._limits.is_on:
            return False
        if channel in self._held:
            return False
        hearing = self._hearing(channel, now)
        hearing.refuses(person, message.sender, message.id, now, now_ms, knew=knew)
        return len(self._held) < self._limits.channels and hearing.is_suspicious(now)

    def hold(self, channel: str, reached: Iterable[str], now: float, now_ms: int) -> Held | None:
        """Hold the channel back if most of those refuse whom that would hit, or who said anything.

        Who acknowledges whole batches is not heard of before: the usual case costs nothing.
        """
        hearing = self._hearing(channel, now)
        reason = hearing.convicts(reached, now)
        if not reason:
            return None
        del self._hearings[channel]
        self._retrials[channel] = Retrial(self._limits, now, hearing.refused_publishers)
        held = self._held[channel] = Held(now_ms, reason)
        return held

    def restore(self, channel: str, held: Held, now: float) -> bool:
        """It was held back before this server began; False if that is not wanted any more."""
        if self._limits.is_on:
            self._held[channel] = held
            self._retrials[channel] = Retrial(self._limits, now)
        return self._limits.is_on

    def is_held(self, channel: str) -> bool:
        return channel in self._held

    def is_tried(self, message: Message) -> bool:
        """Whether this is what its channel was last tried again with."""
        retrial = self._retrials.get(message.channel)
        return retrial is not None and retrial.message is message

    def failed_again(self, message: Message, now: float) -> None:
        """What its channel was tried again with was refused."""
        self._retrials[message.channel].failed(message.sender, now)

    def published(self, channel: str, publisher: str, now: float) -> None:
        """Something more waits in a channel that is held back."""
        retrial = self._retrials.get(channel)
        if retrial is not None:
            retrial.hear_of(publisher, now)

    def release(self, channel: str) -> bool:
        """Let the channel flow, and count anew; False if it was not held back."""
        self._hearings.pop(channel, None)
        retrial = self._retrials.pop(channel, None)
        if retrial is not None:
            retrial.end()
        return self._held.pop(channel, None) is not None

    def _hearing(self, channel: str, now: float) -> Hearing:
        hearing = self._hearings.get(channel)
        if hearing is not None and now - hearing.since < self._half_s:
            return hearing
        if hearing is None:
            hearing = Hearing(self._limits, now)
            if len(self._hearings) >= self._limits.channels:
                del self._hearings[next(iter(self._hearings))]
        else:
            del self._hearings[channel]
            hearing.turn(now)
        self._hearings[channel] = hearing
        return hearing
