"""Judges whether receivers and channels that an operator holds back get nothing, and until when."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from tests.simulation.judges.excuses import HARMLESS, Excuses
from tests.simulation.judges.facts import Facts

# For so long what was on its way comes to a receiver that is held back.
_ON_THE_WAY_S = 1.0
# How much longer or shorter true time may be than by the clock of a server, and how long a server
# takes at most to notice that a hold has ended.
_SLOW, _FAST, _DUE_S = 0.9, 1.1, 2.0
# For so long behind a release a store that fails over may lose it.
_LOSES_S = 12.0
# Faults through which a hold or a release stays: it is stored before the operator hears of it,
# unless the store is away.
_KEEP_HOLDS = HARMLESS | {
    *("the start", "kill_server", "kill_server_in_call", "terminate_server", "crash_server_often"),
    *("kill_supervisor", "stop_supervisor", "kill_importer", "restart_in_vain"),
}


class Limit(NamedTuple):
    """Until when a hold lasts: at least, and at most."""

    least: float
    most: float


ENDLESS = Limit(inf, inf)
# Of what nobody has held back.
_NEVER = Limit(inf, -inf)


@dataclass(slots=True)
class _Hold:
    # Since when it is in force for sure.
    since: float = inf
    limit: Limit = _NEVER
    # Whether a release was asked for without an answer: it may come true at any time.
    may_be_released: bool = False


class _Finding(NamedTuple):
    """That a hold did not hold, or did not end: since when, when, and whether it had a limit."""

    since: float
    at: float
    said: str
    is_limited: bool


class Holds:
    """Collects what an operator holds back: receivers by their names, and channels."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._holds: dict[str, _Hold] = defaultdict(_Hold)
        # What was held without a limit, and not released since.
        self.endless: list[str] = []
        # When what is not held back was released.
        self._released: dict[str, float] = {}
        self._looks = 0
        self._wrong: list[_Finding] = []

    def limit(self, asked_at: float, duration_s: float) -> Limit:
        """Return the limit of a hold so long behind what a server said of its time just now."""
        most = self._facts.now() + duration_s / _SLOW + _DUE_S
        return Limit(asked_at + duration_s / _FAST, most)

    # What an operator does

    def asks(self, what: str, limit: Limit) -> None:
        """Note that the operator is about to hold something back."""
        hold = self._holds[what]
        self._released.pop(what, None)
        if self._facts.now() > hold.limit.least:
            # What was there may have ended by itself.
            hold.since = inf
        hold.limit = Limit(min(hold.limit.least, limit.least), max(hold.limit.most, limit.most))
        if limit is ENDLESS and what not in self.endless:
            self.endless.append(what)

    def held(self, what: str, limit: Limit) -> None:
        """Note that the server has done it."""
        hold = self._holds[what]
        hold.limit = limit
        if not hold.may_be_released:
            self._facts.mark("a hold has a limit" if limit.least < inf else "a hold has no limit")
            hold.since = min(hold.since, self._facts.now())

    def releases(self, what: str) -> None:
        """Note that the operator is about to release it, or that it ends with its session."""
        hold = self._holds[what]
        hold.since, hold.may_be_released = inf, True

    def let_go(self, what: str) -> None:
        """Note that the server has done it."""
        self._holds[what] = _Hold()
        self._released[what] = self._facts.now()
        self.endless = [each for each in self.endless if each != what]

    def refused(self, what: str, said: str) -> None:
        """Note that a server has refused a hold with a limit."""
        now = self._facts.now()
        self._wrong.append(_Finding(now, now, f"a hold of {what} was refused: {said}", True))

    def looked(self, what: str, asked_at: float, *, is_held: bool) -> None:
        """Note whether a server says that something is held back."""
        now, hold = self._facts.now(), self._holds[what]
        is_limited = hold.limit.least < inf
        self._looks += 1
        if not is_held and hold.since < asked_at and now < hold.limit.least:
            said = f"{what} is not held back any more, although it is since {hold.since:.3f}"
            self._wrong.append(_Finding(hold.since, now, said, is_limited))
        elif is_held and hold.since < inf and asked_at > hold.limit.most:
            said = f"{what} is still held back, although that ended at {hold.limit.most:.3f}"
            # A server ends it as soon as it runs.
            since = max(hold.limit.most, asked_at - _DUE_S)
            self._wrong.append(_Finding(since, now, said, is_limited))
        elif not is_held and hold.since < inf and asked_at > hold.limit.most:
            self._facts.mark("a hold has ended by itself")
        elif is_held and what in self._released:
            self._held_again(what)

    def _held_again(self, what: str) -> None:
        """Note that something is held back although it was released; the operator does it again."""
        at = self._released.pop(what)
        said = f"{what} is held back again, although it was released"
        lost_by = min(self._facts.now(), at + _LOSES_S)
        self._wrong.append(_Finding(at, lost_by, said, is_limited=False))
        self._facts.mark("a release was lost")
        self.endless.append(what)

    def is_over(self, what: str) -> bool:
        """Return whether a hold has no limit, or one that has passed, so that it may be released.

        What is not held back may be released, too.
        """
        limit = self._holds[what].limit
        return what in self.endless or (limit is not _NEVER and self._facts.now() > limit.most)

    # What receivers get

    def taken(self, worker: str, channel: str, key: str) -> None:
        """Note that a receiver has got a message."""
        now = self._facts.now()
        for what in (worker, channel):
            hold = self._holds[what]
            if hold.since + _ON_THE_WAY_S < now < hold.limit.least:
                said = f"{worker} got {key}, although {what} is held back since {hold.since:.3f}"
                self._wrong.append(_Finding(hold.since, now, said, hold.limit.least < inf))

    # What it means

    def unfinished(self) -> Iterator[str]:
        """Yield what has no end yet."""
        for what in self.endless:
            yield f"operations: {what} is still held back"

    def violations(self, excuses: Excuses, *, have_one_clock: bool) -> Iterator[str]:
        """Yield what came through holds, and which ended too early or too late.

        Args:
            have_one_clock: Whether limits are measured by one clock, which nobody has set.
        """
        excuses.judges("hold", self._looks)
        for since, at, said, is_limited in self._wrong:
            if is_limited and not have_one_clock:
                excuses.count("hold", "several clocks")
                continue
            excuses.judges("message behind a hold")
            if not excuses.excuse("message behind a hold", since, at, harmless=_KEEP_HOLDS):
                yield f"operations: {said} at {at:.3f}"
