"""Holds a channel back when most of its receivers refuse most of its messages."""

from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class GuardLimits:
    """When a channel is held back, and how much the guard may remember."""

    window_s: float = 60.0
    # That many must have refused before it can be the fault of the messages.
    min_receivers: int = 3
    # Receivers of a channel that are told apart; of more, the first in the window stand for all.
    receivers: int = 200
    channels: int = 1000


@dataclass(frozen=True, slots=True)
class Held:
    """Since when and why a channel is held back."""

    since: float
    reason: str


@dataclass(slots=True)
class _Half:
    """What was said in one half of a window; of each receiver, whether it refused anything."""

    answers: int = 0
    refusals: int = 0
    receivers: dict[int, bool] = field(default_factory=dict)


class _Window:
    """The answers of the last half and this one."""

    __slots__ = ("answered", "before", "refused", "since", "this")

    def __init__(self, now: float) -> None:
        self.before = _Half()
        self.this = _Half()
        self.since = now
        # Receivers of both halves, each counted once.
        self.answered = 0
        self.refused = 0

    def turn(self, now: float, half_s: float) -> None:
        """Forget what is older than a window."""
        self.before = self.this if now - self.since < 2 * half_s else _Half()
        self.this = _Half()
        self.since = now
        self.answered = len(self.before.receivers)
        self.refused = sum(self.before.receivers.values())

    def note(self, receiver: int, limit: int, *, refused: bool) -> None:
        self.this.answers += 1
        self.this.refusals += refused
        said = self.this.receivers.get(receiver)
        said_before = self.before.receivers.get(receiver)
        if said is None and said_before is None:
            if self.answered >= limit:
                return
            self.answered += 1
        self.this.receivers[receiver] = refused or bool(said)
        if refused and not said and not said_before:
            self.refused += 1

    def is_bad(self, min_receivers: int) -> bool:
        return (
            self.refused >= min_receivers
            and self.refused * 2 > self.answered
            and self.refusals * 2 > self.answers
        )

    @property
    def answers(self) -> int:
        return self.before.answers + self.this.answers

    @property
    def refusals(self) -> int:
        return self.before.refusals + self.this.refusals


class Guard:
    """Knows the channels that are held back, and what was lately said on the others."""

    def __init__(self, limits: GuardLimits | None = None) -> None:
        self._limits = limits or GuardLimits()
        self._half_s = self._limits.window_s / 2
        # The channel whose window began first stands first.
        self._windows: dict[str, _Window] = {}
        self._held: dict[str, Held] = {}
        self.held = MappingProxyType(self._held)

    def note(self, channel: str, receiver: int, refused: bool, now: float) -> bool:
        """A receiver took or refused a message; whether the channel is held back from now on."""
        window = self._windows.get(channel)
        if window is None or now - window.since >= self._half_s:
            window = self._turn(channel, window, now)
        window.note(receiver, self._limits.receivers, refused=refused)
        if not refused or not window.is_bad(self._limits.min_receivers):
            return False
        if channel in self._held or len(self._held) >= self._limits.channels:
            return False
        self._held[channel] = Held(now, _reason(window))
        del self._windows[channel]
        return True

    def is_held(self, channel: str) -> bool:
        return channel in self._held

    def release(self, channel: str) -> bool:
        """Let the channel flow, and count anew; False if it was not held back."""
        self._windows.pop(channel, None)
        return self._held.pop(channel, None) is not None

    def _turn(self, channel: str, window: _Window | None, now: float) -> _Window:
        if window is None:
            window = _Window(now)
            if len(self._windows) >= self._limits.channels:
                del self._windows[next(iter(self._windows))]
        else:
            del self._windows[channel]
            window.turn(now, self._half_s)
        self._windows[channel] = window
        return window


def _reason(window: _Window) -> str:
    return (
        f"{window.refused} of {window.answered} receivers refused "
        f"{window.refusals} of {window.answers} messages"
    )
