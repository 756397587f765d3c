"""What went wrong when, and what that excuses: each excuse names its fault, and is counted."""

from collections import Counter
from collections.abc import Collection
from math import inf
from typing import Final, NamedTuple

# Faults through which nothing is lost, refused or forgotten: servers that are replaced, or go on
# if that fails, and a wall clock that nobody goes by.
HARMLESS: Final = frozenset(
    (
        *("restart", "ask_for_restart", "ask_by_signal"),
        *("restart_with_bad_settings", "restart_with_bad_code", "set_clock"),
    )
)
# What excuses that servers are away while their deployment is written anew, and have other sessions
# afterwards.
DIVISION: Final = "division"
# Faults by which a store may lose its last changes, or a deployment is written anew.
LOSE_TAILS: Final = frozenset(
    (
        *("fail_over", "freeze_and_replace_primary", "cut_off_and_replace_primary"),
        *("end_and_replace_primary", "cut_off_primary_and_kill_server", DIVISION),
        *("cut_off_server_with_primary", "fill_disk_and_cut_off_server_with_primary"),
    )
)
# How long after a fault its effects may still show.
HEALS_S: Final = 15.0


class Trouble(NamedTuple):
    """Something that went wrong, from when until when its effects may show."""

    fault: str
    since: float
    until: float = inf


class Excuses:
    """Knows all troubles of a world, and counts what they excuse."""

    def __init__(self) -> None:
        self._troubles: list[Trouble] = []
        # How often each thing was judged, and how often a fault excused one that was not right.
        self.judged: Counter[str] = Counter()
        self.used: Counter[str] = Counter()

    def add(self, fault: str, since: float, duration_s: float, *, heals_s: float = HEALS_S) -> None:
        """Note something that goes wrong for some time."""
        self._troubles.append(Trouble(fault, since, since + duration_s + heals_s))

    def end(self, fault: str, now: float) -> None:
        """Note that all that goes wrong by this name ends."""
        until = now + HEALS_S
        self._troubles[:] = [
            each._replace(until=min(each.until, until)) if each.fault == fault else each
            for each in self._troubles
        ]

    def judges(self, what: str, count: int = 1) -> None:
        """Count something that a judge looks at. The first word of its name says which judge."""
        self.judged[what] += count

    def count(self, what: str, reason: str) -> None:
        """Count something that is excused for this reason."""
        self.used[f"{what}: {reason}"] += 1

    def excuse(
        self,
        what: str,
        since: float,
        until: float,
        *,
        harmless: Collection[str] = (),
        only: Collection[str] | None = None,
    ) -> bool:
        """Return whether a fault between these times excuses something, which is counted then.

        Args:
            harmless: The faults that do not excuse it.
            only: The faults that do, if not all others do.
        """
        fault = self.in_force(since, until, harmless=harmless, only=only)
        if fault is not None:
            self.count(what, fault)
        return fault is not None

    def in_force(
        self,
        since: float,
        until: float,
        *,
        harmless: Collection[str] = (),
        only: Collection[str] | None = None,
    ) -> str | None:
        """Return a fault whose effects may show between these times; None if all was calm."""
        for fault, begin, end in self._troubles:
            counts = fault not in harmless if only is None else fault in only
            if counts and begin <= until and since <= end:
                return fault
        return None

    def number_of(self, fault: str, since: float, until: float) -> int:
        """Return how often this fault went wrong between these times; its effects do not count."""
        return sum(
            name == fault and begin <= until and since <= end - HEALS_S
            for name, begin, end in self._troubles
        )

    def begin_again(self) -> None:
        """Forget what was counted."""
        self.judged.clear()
        self.used.clear()
