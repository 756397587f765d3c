"""Recent verdicts of a channel's receivers, and how its publishers fare."""

from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.delivery.basics.node import NS_PER_MS

# How often the guard decides whether to hold a suspicious channel, in seconds.
_BETWEEN_DECISIONS_S = 1.0
# How many publishers of a channel are tracked.
_MOST_PUBLISHERS = 64


@dataclass(frozen=True, slots=True)
class GuardLimits:
    """Thresholds for holding a channel, and limits of what the guard remembers."""

    window_s: float
    # This many receivers must refuse messages before the guard suspects the messages, ...
    min_receivers: int
    # ... and this many messages must be refused. A single one becomes a dead letter.
    min_messages: int
    # How long other receivers get to accept what some refuse.
    grace_s: float
    # The pause before the first probe of a held channel. It doubles up to the longest pause.
    first_pause_s: float
    # How many receivers of a channel are tracked. Beyond that, a sample that clients cannot
    # influence.
    receivers: int = 200
    channels: int = 1000
    longest_pause_s: float = 300.0


class _Tally:
    """Accepted and refused messages in the current half of the window and in the previous one."""

    __slots__ = ("_refused", "_refused_before", "_taken", "_taken_before")

    def __init__(self) -> None:
        self._taken = self._taken_before = 0
        self._refused = self._refused_before = 0

    def turn(self, *, keeps: bool) -> bool:
        """Start a new half. Returns whether any counts are left."""
        self._taken_before = self._taken if keeps else 0
        self._refused_before = self._refused if keeps else 0
        self._taken = self._refused = 0
        return self._taken_before + self._refused_before > 0

    @property
    def taken(self) -> int:
        return self._taken + self._taken_before

    @property
    def refused(self) -> int:
        return self._refused + self._refused_before


class _ReceiverVerdicts(_Tally):
    __slots__ = ("_knew", "_knew_before", "is_counted")

    def __init__(self) -> None:
        super().__init__()
        # Whether it refused a publisher whose messages it had accepted recently.
        self._knew = self._knew_before = False
        # Whether `broken` includes it.
        self.is_counted = False

    def turn(self, *, keeps: bool) -> bool:
        self._knew_before, self._knew = self._knew and keeps, False
        return super().turn(keeps=keeps)

    def takes(self) -> None:
        self._taken += 1

    def refuses(self, *, knew: bool) -> None:
        self._refused += 1
        self._knew |= knew

    @property
    def is_broken(self) -> bool:
        """Whether it used to accept messages of a publisher and now refuses most of them."""
        return (self._knew or self._knew_before) and self.refused > self.taken


class _Publisher(_Tally):
    """Messages of one publisher that any receiver accepted, and that any receiver refused."""

    __slots__ = ("_last_refused", "_last_taken")

    def __init__(self) -> None:
        super().__init__()
        # A message gets verdicts from many receivers. Ids increase, so each message counts once.
        self._last_taken = self._last_refused = 0

    def takes(self, message: int) -> None:
        if message > self._last_taken:
            self._last_taken = message
            self._taken += 1

    def refuses(self, message: int) -> None:
        if message > self._last_refused:
            self._last_refused = message
            self._refused += 1

    @property
    def passes(self) -> bool:
        """Whether receivers accepted at least half as many messages as they refused."""
        return self.taken > 0 and self.taken * 2 >= self.refused


class ChannelVerdicts:
    """The verdicts of a channel's receivers in both halves of the window."""

    def __init__(self, limits: GuardLimits, now: float) -> None:
        self._limits = limits
        self.since = now
        self.people: dict[str, _ReceiverVerdicts] = {}
        # The number of broken receivers.
        self.broken = 0
        self._publishers: dict[str, _Publisher] = {}
        # Nothing was recorded about who accepted messages with lower ids.
        self._heard_from = 0
        self._heard_until = 0.0
        # One in this many receivers is tracked.
        self._share = 1
        self._most_asked = 0
        self._decides_at = 0.0
        # When the channel became suspicious; negative if it is not.
        self._suspected_at = -1.0

    def turn(self, now: float) -> None:
        """Start a new half and forget verdicts older than a window."""
        keeps = now - self.since < self._limits.window_s
        self.since = now
        self.people = {
            who: verdicts for who, verdicts in self.people.items() if verdicts.turn(keeps=keeps)
        }
        publishers = self._publishers
        self._publishers = {who: each for who, each in publishers.items() if each.turn(keeps=keeps)}
        if len(self.people) * 4 < self._limits.receivers:
            self._share = max(1, self._share // 2)
        self._count()
        self._most_asked = 0
        if not keeps:
            self._suspected_at = -1.0

    def takes(self, person: str, publisher: str, message: int) -> None:
        self._publisher(publisher).takes(message)
        verdicts = self.people.get(person) or self._of(person)
        if verdicts is not None:
            verdicts.takes()
            if verdicts.is_counted and not verdicts.is_broken:
                verdicts.is_counted = False
                self.broken -= 1

    def refuses(
        self, person: str, publisher: str, *, message: int, now: float, now_ms: int, knew: bool
    ) -> None:
        if now >= self._heard_until:
            # From now on, the guard records which receivers accept messages.
            self._heard_from = now_ms * NS_PER_MS
        self._heard_until = now + self._limits.window_s
        if message >= self._heard_from:
            self._publisher(publisher).refuses(message)
        verdicts = self._of(person)
        if verdicts is not None:
            verdicts.refuses(knew=knew)
            if verdicts.is_broken and not verdicts.is_counted:
                verdicts.is_counted = True
                self.broken += 1

    def is_suspicious(self, now: float) -> bool:
        """Return whether to ask now which receivers a hold would affect."""
        is_bad = (
            self.broken * self._share >= self._limits.min_receivers
            and self.broken * 2 > len(self.people)
            and not any(each.passes for each in self._publishers.values())
            and sum(each.refused for each in self._publishers.values()) >= self._limits.min_messages
        )
        if not is_bad:
            self._suspected_at = -1.0
            return False
        if self._suspected_at < 0:
            self._suspected_at = now
        return now - self._suspected_at >= self._limits.grace_s and (
            self.broken > self._most_asked or now >= self._decides_at
        )

    def reason_to_hold(self, reached: Iterable[str], now: float) -> str:
        """Return the reason to hold the channel, or an empty string if too few receivers refuse."""
        everybody = set(self.people)
        for person in reached:
            if self._is_looked_at(person):
                everybody.add(person)
                if self.broken * 2 <= len(everybody):
                    self._most_asked = max(self._most_asked, self.broken)
                    self._decides_at = now + _BETWEEN_DECISIONS_S
                    return ""
        return self._reason(len(everybody))

    @property
    def refused_publishers(self) -> set[str]:
        """The publishers with refused messages."""
        return {who for who, each in self._publishers.items() if each.refused}

    def _reason(self, total: int) -> str:
        refused = sum(verdicts.refused for verdicts in self.people.values())
        taken = sum(verdicts.taken for verdicts in self.people.values())
        about = "" if self._share == 1 else "about "
        return (
            f"{about}{self.broken * self._share} of {total * self._share} receivers refused "
            f"{refused * self._share} of {(refused + taken) * self._share} messages"
        )

    def _publisher(self, name: str) -> _Publisher:
        found = self._publishers.get(name)
        if found is None:
            if len(self._publishers) >= _MOST_PUBLISHERS:
                # Publishers whose messages pass must stay: they prove that the channel works.
                worst = [who for who, each in self._publishers.items() if not each.passes]
                del self._publishers[next(iter(worst or self._publishers))]
            found = self._publishers[name] = _Publisher()
        return found

    def _of(self, person: str) -> _ReceiverVerdicts | None:
        """Return the verdicts of a person, or None if that person is not tracked."""
        verdicts = self.people.get(person)
        if verdicts is None and self._is_looked_at(person):
            verdicts = self.people[person] = _ReceiverVerdicts()
            if len(self.people) > self._limits.receivers:
                self._look_at_fewer()
                return self.people.get(person)
        return verdicts

    def _is_looked_at(self, person: str) -> bool:
        # String hashes differ between processes, so a client cannot choose to be tracked.
        return self._share == 1 or hash(person) % self._share == 0

    def _look_at_fewer(self) -> None:
        self._share *= 2
        self._most_asked = 0
        self.people = {
            who: verdicts for who, verdicts in self.people.items() if self._is_looked_at(who)
        }
        self._count()

    def _count(self) -> None:
        for verdicts in self.people.values():
            verdicts.is_counted = verdicts.is_broken
        self.broken = sum(verdicts.is_counted for verdicts in self.people.values())
