"""Holds a channel back when most of its receivers refuse most of its messages."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from app.delivery.messages import Message

# Who is reached by a channel is not asked again and again if the answer was no (seconds).
_PATIENCE_S = 1.0


@dataclass(frozen=True, slots=True)
class GuardLimits:
    """When a channel is held back, and how much the guard may remember."""

    is_on: bool = True
    window_s: float = 60.0
    # So many must refuse before it can be the fault of the messages, ...
    min_receivers: int = 3
    # ... and so many of these: one that nobody can take is a dead letter, and no more.
    min_messages: int = 5
    # Receivers of a channel that are told apart; of more, a share that nobody can choose.
    receivers: int = 200
    channels: int = 1000


@dataclass(frozen=True, slots=True)
class Held:
    """Since when (ms since 1970) and why a channel is held back."""

    since: int
    reason: str


class _Said:
    """What one receiver said in this half of a window, and in the half before."""

    __slots__ = ("is_counted", "refused", "refused_before", "taken", "taken_before")

    def __init__(self) -> None:
        self.taken = self.taken_before = 0
        self.refused = self.refused_before = 0
        # Whether it stands among those that refuse.
        self.is_counted = False

    def turn(self, *, keeps: bool) -> bool:
        """A new half begins; whether anything is left."""
        self.taken_before = self.taken if keeps else 0
        self.refused_before = self.refused if keeps else 0
        self.taken = self.refused = 0
        return self.taken_before + self.refused_before > 0

    @property
    def refuses(self) -> bool:
        """Whether it refused most of what it said something of."""
        return self.refused + self.refused_before > self.taken + self.taken_before


class _Window:
    """What the receivers of a channel said in the last half and this one."""

    __slots__ = (
        "_limits",
        "_messages",
        "_messages_before",
        "_most_asked",
        "_patient_until",
        "_share",
        "people",
        "refusing",
        "since",
    )

    def __init__(self, limits: GuardLimits, now: float) -> None:
        self._limits = limits
        self.since = now
        self.people: dict[str, _Said] = {}
        # How many of them refuse most of what they get.
        self.refusing = 0
        # Messages that somebody refused, as many as must be known.
        self._messages: set[int] = set()
        self._messages_before: set[int] = set()
        # One of so many receivers is looked at.
        self._share = 1
        self._most_asked = 0
        self._patient_until = 0.0

    def turn(self, now: float) -> None:
        """Forget what is older than a window."""
        keeps = now - self.since < self._limits.window_s
        self.since = now
        self.people = {who: said for who, said in self.people.items() if said.turn(keeps=keeps)}
        self._messages_before = self._messages if keeps else set()
        self._messages = set()
        if len(self.people) * 4 < self._limits.receivers:
            self._share = max(1, self._share // 2)
        self._count()
        self._most_asked = 0

    def takes(self, person: str) -> None:
        said = self.people.get(person) or self._of(person)
        if said is not None:
            said.taken += 1
            if said.is_counted and not said.refuses:
                said.is_counted = False
                self.refusing -= 1

    def refuses(self, person: str, message: int) -> None:
        said = self._of(person)
        if said is not None:
            said.refused += 1
            if said.refuses and not said.is_counted:
                said.is_counted = True
                self.refusing += 1
        if len(self._messages) < self._limits.min_messages:
            self._messages.add(message)

    def is_suspicious(self, now: float) -> bool:
        """Whether it is time to ask whom holding the channel back would hit."""
        return (
            self.refusing * self._share >= self._limits.min_receivers
            and self.refusing * 2 > len(self.people)
            and (self.refusing > self._most_asked or now >= self._patient_until)
            and len(self._messages | self._messages_before) >= self._limits.min_messages
        )

    def convicts(self, reached: Iterable[str], now: float) -> str:
        """Why the channel must be held back; nothing if too few of these refuse."""
        everybody = set(self.people)
        for person in reached:
            if self._is_looked_at(person):
                everybody.add(person)
                if self.refusing * 2 <= len(everybody):
                    self._most_asked = max(self._most_asked, self.refusing)
                    self._patient_until = now + _PATIENCE_S
                    return ""
        return self._reason(len(everybody))

    def _reason(self, total: int) -> str:
        refused = sum(said.refused + said.refused_before for said in self.people.values())
        taken = sum(said.taken + said.taken_before for said in self.people.values())
        about = "" if self._share == 1 else "about "
        return (
            f"{about}{self.refusing * self._share} of {total * self._share} receivers refused "
            f"{refused * self._share} of {(refused + taken) * self._share} messages"
        )

    def _of(self, person: str) -> _Said | None:
        """What was said by somebody; None if that one is not looked at."""
        said = self.people.get(person)
        if said is None and self._is_looked_at(person):
            said = self.people[person] = _Said()
            if len(self.people) > self._limits.receivers:
                self._look_at_fewer()
                return self.people.get(person)
        return said

    def _is_looked_at(self, person: str) -> bool:
        # The hash of a text is another one in each process: nobody knows how to be chosen.
        return self._share == 1 or hash(person) % self._share == 0

    def _look_at_fewer(self) -> None:
        self._share *= 2
        self.people = {who: said for who, said in self.people.items() if self._is_looked_at(who)}
        self._count()

    def _count(self) -> None:
        for said in self.people.values():
            said.is_counted = said.refuses
        self.refusing = sum(said.is_counted for said in self.people.values())


class Guard:
    """Knows the channels that are held back, and what was lately said on the others."""

    def __init__(self, limits: GuardLimits | None = None) -> None:
        self._limits = limits or GuardLimits()
        self._half_s = self._limits.window_s / 2
        # The channel whose window began first stands first.
        self._windows: dict[str, _Window] = {}
        self._held: dict[str, Held] = {}
        self.held = MappingProxyType(self._held)

    @property
    def window_s(self) -> float:
        """How long it matters what was said."""
        return self._limits.window_s

    def taken(self, messages: Sequence[Message], person: str, now: float) -> None:
        """A receiver took these."""
        if self._limits.is_on:
            for message in messages:
                self._window(message.channel, now).takes(person)

    def refused(self, message: Message, person: str, now: float) -> bool:
        """A receiver refused it; whether its channel looks so bad that `hold` must be asked."""
        channel = message.channel
        if not self._limits.is_on:
            return False
        window = self._window(channel, now)
        window.refuses(person, message.id)
        if channel in self._held or len(self._held) >= self._limits.channels:
            return False
        return window.is_suspicious(now)

    def hold(self, channel: str, reached: Iterable[str], now: float, now_ms: int) -> Held | None:
        """Hold the channel back if most of those refuse whom that would hit, or who said anything.

        Who acknowledges whole batches is not heard of before: the usual case costs nothing.
        """
        reason = self._window(channel, now).convicts(reached, now)
        if not reason:
            return None
        del self._windows[channel]
        held = self._held[channel] = Held(now_ms, reason)
        return held

    def restore(self, channel: str, held: Held) -> bool:
        """It was held back before this server began; False if that is not wanted any more."""
        if self._limits.is_on:
            self._held[channel] = held
        return self._limits.is_on

    def is_held(self, channel: str) -> bool:
        return channel in self._held

    def release(self, channel: str) -> bool:
        """Let the channel flow, and count anew; False if it was not held back."""
        self._windows.pop(channel, None)
        return self._held.pop(channel, None) is not None

    def _window(self, channel: str, now: float) -> _Window:
        window = self._windows.get(channel)
        if window is not None and now - window.since < self._half_s:
            return window
        if window is None:
            window = _Window(self._limits, now)
            if len(self._windows) >= self._limits.channels:
                del self._windows[next(iter(self._windows))]
        else:
            del self._windows[channel]
            window.turn(now)
        self._windows[channel] = window
        return window
