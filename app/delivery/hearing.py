"""What was lately said of a channel: by its receivers, and so of its publishers."""

from collections.abc import Iterable
from dataclasses import dataclass

# Who is reached by a channel is not asked again and again if the answer was no (seconds).
_PATIENCE_S = 1.0
# Publishers of a channel that are told apart.
_MOST_PUBLISHERS = 64
_NS_PER_MS = 1_000_000


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
    # So long others have time to take what some refuse.
    hearing_s: float = 5.0
    # After so long a channel that is held back is tried again; the pause doubles up to the longest.
    first_pause_s: float = 5.0
    longest_pause_s: float = 300.0


class _Said:
    """What one receiver said in this half of a window, and in the half before."""

    __slots__ = (
        "is_counted",
        "knew",
        "knew_before",
        "refused",
        "refused_before",
        "taken",
        "taken_before",
    )

    def __init__(self) -> None:
        self.taken = self.taken_before = 0
        self.refused = self.refused_before = 0
        # Whether it refused a publisher of whom it had taken something lately.
        self.knew = self.knew_before = False
        # Whether it stands among those that are broken.
        self.is_counted = False

    def turn(self, *, keeps: bool) -> bool:
        """A new half begins; whether anything is left."""
        self.taken_before = self.taken if keeps else 0
        self.refused_before = self.refused if keeps else 0
        self.knew_before = self.knew and keeps
        self.taken = self.refused = 0
        self.knew = False
        return self.taken_before + self.refused_before > 0

    @property
    def is_broken(self) -> bool:
        """Whether it refused most of what it said something of, and took it before."""
        refused = self.refused + self.refused_before
        return (self.knew or self.knew_before) and refused > self.taken + self.taken_before


class _Publisher:
    """How many messages of one publisher somebody took, and how many somebody refused."""

    __slots__ = (
        "_last_passed",
        "_last_refused",
        "passed",
        "passed_before",
        "refused",
        "refused_before",
    )

    def __init__(self) -> None:
        self.passed = self.passed_before = 0
        self.refused = self.refused_before = 0
        # Messages come in the order of their ids, to many receivers: each counts once.
        self._last_passed = self._last_refused = 0

    def turn(self, *, keeps: bool) -> bool:
        """A new half begins; whether anything is left."""
        self.passed_before = self.passed if keeps else 0
        self.refused_before = self.refused if keeps else 0
        self.passed = self.refused = 0
        return self.passed_before + self.refused_before > 0

    def takes(self, message: int) -> None:
        if message > self._last_passed:
            self._last_passed = message
            self.passed += 1

    def refuses(self, message: int) -> None:
        if message > self._last_refused:
            self._last_refused = message
            self.refused += 1

    @property
    def count(self) -> int:
        """How many of its messages were refused."""
        return self.refused + self.refused_before

    @property
    def passes(self) -> bool:
        """Whether enough of its messages were taken by somebody; some answers are on the way."""
        passed = self.passed + self.passed_before
        return passed > 0 and passed * 2 >= self.count


class Hearing:
    """What the receivers of a channel said in the last half of a window and this one."""

    __slots__ = (
        "_heard_from",
        "_heard_until",
        "_limits",
        "_most_asked",
        "_patient_until",
        "_publishers",
        "_share",
        "_suspected_at",
        "broken",
        "people",
        "since",
    )

    def __init__(self, limits: GuardLimits, now: float) -> None:
        self._limits = limits
        self.since = now
        self.people: dict[str, _Said] = {}
        # How many of them are broken, if it is not the messages.
        self.broken = 0
        self._publishers: dict[str, _Publisher] = {}
        # Of messages with smaller ids it is not known who took them: nobody listened yet.
        self._heard_from = 0
        self._heard_until = 0.0
        # One of so many receivers is looked at.
        self._share = 1
        self._most_asked = 0
        self._patient_until = 0.0
        # Since when the channel looks so bad; never, if negative.
        self._suspected_at = -1.0

    def turn(self, now: float) -> None:
        """Forget what is older than a window."""
        keeps = now - self.since < self._limits.window_s
        self.since = now
        self.people = {who: said for who, said in self.people.items() if said.turn(keeps=keeps)}
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
        said = self.people.get(person) or self._of(person)
        if said is not None:
            said.taken += 1
            if said.is_counted and not said.is_broken:
                said.is_counted = False
                self.broken -= 1

    def refuses(
        self, person: str, publisher: str, message: int, now: float, now_ms: int, *, knew: bool
    ) -> None:
        if now >= self._heard_until:
            # From now on takers are heard, of this and what comes later.
            self._heard_from = now_ms * _NS_PER_MS
        self._heard_until = now + self._limits.window_s
        if message >= self._heard_from:
            self._publisher(publisher).refuses(message)
        said = self._of(person)
        if said is not None:
            said.refused += 1
            said.knew |= knew
            if said.is_broken and not said.is_counted:
                said.is_counted = True
                self.broken += 1

    def is_suspicious(self, now: float) -> bool:
        """Whether it is time to ask whom holding the channel back would hit."""
        is_bad = (
            self.broken * self._share >= self._limits.min_receivers
            and self.broken * 2 > len(self.people)
            and not any(each.passes for each in self._publishers.values())
            and sum(each.count for each in self._publishers.values()) >= self._limits.min_messages
        )
        if not is_bad:
            self._suspected_at = -1.0
            return False
        if self._suspected_at < 0:
            self._suspected_at = now
        return now - self._suspected_at >= self._limits.hearing_s and (
            self.broken > self._most_asked or now >= self._patient_until
        )

    def convicts(self, reached: Iterable[str], now: float) -> str:
        """Why the channel must be held back; nothing if too few of these refuse."""
        everybody = set(self.people)
        for person in reached:
            if self._is_looked_at(person):
                everybody.add(person)
                if self.broken * 2 <= len(everybody):
                    self._most_asked = max(self._most_asked, self.broken)
                    self._patient_until = now + _PATIENCE_S
                    return ""
        return self._reason(len(everybody))

    @property
    def refused_publishers(self) -> set[str]:
        """Those of whom something was refused."""
        return {who for who, each in self._publishers.items() if each.count}

    def _reason(self, total: int) -> str:
        refused = sum(said.refused + said.refused_before for said in self.people.values())
        taken = sum(said.taken + said.taken_before for said in self.people.values())
        about = "" if self._share == 1 else "about "
        return (
            f"{about}{self.broken * self._share} of {total * self._share} receivers refused "
            f"{refused * self._share} of {(refused + taken) * self._share} messages"
        )

    def _publisher(self, name: str) -> _Publisher:
        found = self._publishers.get(name)
        if found is None:
            if len(self._publishers) >= _MOST_PUBLISHERS:
                # Whose messages pass is what speaks for the others.
                worst = [who for who, each in self._publishers.items() if not each.passes]
                del self._publishers[next(iter(worst or self._publishers))]
            found = self._publishers[name] = _Publisher()
        return found

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
        self._most_asked = 0
        self.people = {who: said for who, said in self.people.items() if self._is_looked_at(who)}
        self._count()

    def _count(self) -> None:
        for said in self.people.values():
            said.is_counted = said.is_broken
        self.broken = sum(said.is_counted for said in self.people.values())
