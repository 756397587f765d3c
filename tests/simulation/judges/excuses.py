"""What went wrong when, and what that excuses: each excuse names its fault, and is counted."""

from collections import Counter
from collections.abc import Collection
from operator import attrgetter
from typing import Final, NamedTuple

# Faults through which nothing is lost, refused or forgotten: servers that are replaced, or go on
# if that fails, and a wall clock that nobody goes by.
HARMLESS: Final = frozenset(
    (
        *("restart", "ask_for_restart", "ask_by_signal"),
        *("restart_with_bad_settings", "restart_with_bad_code", "set_clock"),
        # Shards move to other hosts in order.
        "drain_host",
    )
)
# What excuses that servers are away while their deployment is written anew, and have other sessions
# afterwards.
DIVISION: Final = "division"
# What excuses that servers are away while an earlier release has their store, and that sessions
# without a name end then.
GOING_BACK: Final = "going_back"
# Faults by which a store may lose its last changes, or a deployment is written anew.
LOSE_TAILS: Final = frozenset(
    (
        *("fail_over", "freeze_and_replace_primary", "cut_off_and_replace_primary"),
        *("end_and_replace_primary", "cut_off_primary_and_kill_server", DIVISION),
        *("cut_off_server_with_primary", "fill_disk_and_cut_off_server_with_primary"),
    )
)
# How long after most faults their effects may still show: clients and servers connect again.
HEALS_S: Final = 6.0
# After others it takes longer, whatever their duration was.
_HEALS_S: Final = {
    # A connection that is lost is given up when it has been silent for five seconds.
    **dict.fromkeys(("cut_connection", "hold_connection"), 9.0),
    **dict.fromkeys(("lose_connection", "lose_direction"), 12.0),
    **dict.fromkeys(("part_from_clients", "part_from_store", "part_from_server"), 8.0),
    **dict.fromkeys(("slow_network", "move_slot", "cut_off_replica", "slow_replica"), 8.0),
    # It begins at a call, and a suspension lasts as long as a lease at least.
    **dict.fromkeys(("freeze_server_in_call", "kill_server_in_call", "hold_reading"), 8.0),
    **dict.fromkeys(("crash_store_soon", "suspend_server_in_raise"), 8.0),
    # A server that has not run loses its lease, or its supervisor replaces it.
    **dict.fromkeys(("freeze_server", "suspend_server", "freeze_server_for_long"), 8.0),
    # The next host takes its shards, one after another host that may have failed, too.
    **dict.fromkeys(("freeze_host", "freeze_claimer", "kill_claimer"), 10.0),
    **dict.fromkeys(("part_hosts", "part_hosts_one_way"), 8.0),
    # Shards move one at a time, and what does not open one in five seconds loses it again.
    **dict.fromkeys(("drain_host", "update_host"), 10.0),
    **dict.fromkeys(("drain_host_and_kill", "drain_host_and_freeze"), 15.0),
    # Servers learn which store serves now, tell it what it lacks, and whose it is.
    **dict.fromkeys(LOSE_TAILS - {DIVISION}, 12.0),
    # A restart takes as long as its slowest step; whoever hangs is killed after five seconds, or
    # goes on after ten.
    **dict.fromkeys(("restart", "ask_for_restart", "ask_by_signal"), 10.0),
    **dict.fromkeys(("restart_with_bad_settings", "restart_with_bad_code"), 10.0),
    **dict.fromkeys(("restart_in_vain", "restart_that_hangs", "restart_and_kill"), 10.0),
    "restart_and_freeze": 15.0,
}
# How much longer after one that lasted long, by its duration: what has gathered is worked off, with
# small limits in some worlds. And how long it takes at most until all is well again.
_GATHERED: Final = 0.2
_LONGEST_S: Final = 15.0
# While a process stands still, or cannot reach a store, it does not hear of other faults.
_STAND_STILL: Final = frozenset(
    (
        *("freeze_server", "freeze_server_in_call", "freeze_server_for_long"),
        *("suspend_server", "suspend_server_in_raise", "freeze_supervisor", "freeze_store"),
        *("end_store", "crash_store_soon", "cut_power", "cut_power_of_store"),
        *("part_from_store", "hold_reading", "lose_machine"),
    )
)


def _healing_s(fault: str, duration_s: float) -> float:
    return min(_LONGEST_S, _HEALS_S.get(fault, HEALS_S) + _GATHERED * duration_s)


class Trouble(NamedTuple):
    """Something that went wrong, from when until when, and until when its effects may show."""

    fault: str
    since: float
    over: float
    until: float


class Excuses:
    """Knows all troubles of a world, and counts what they excuse."""

    def __init__(self) -> None:
        self._troubles: list[Trouble] = []
        # How often each thing was judged, and how often a fault excused one that was not right.
        self.judged: Counter[str] = Counter()
        self.used: Counter[str] = Counter()

    def add(
        self, fault: str, since: float, duration_s: float, *, heals_s: float | None = None
    ) -> None:
        """Note something that goes wrong for some time."""
        over = since + duration_s
        longer_s = _healing_s(fault, duration_s) if heals_s is None else heals_s
        self._troubles.append(Trouble(fault, since, over, over + longer_s))

    def end(self, fault: str, now: float) -> None:
        """Note that all that goes wrong by this name ends."""
        until = now + _healing_s(fault, 0.0)
        self._troubles[:] = [
            each._replace(over=min(each.over, now), until=min(each.until, until))
            if each.fault == fault
            else each
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
        for each in self._troubles:
            counts = each.fault not in harmless if only is None else each.fault in only
            if counts and each.since <= until and since <= self._shows_until(each):
                return each.fault
        return None

    def _shows_until(self, trouble: Trouble) -> float:
        """Return until when its effects may show to those that stood still meanwhile."""
        until = trouble.until
        stops = [each for each in self._troubles if each.fault in _STAND_STILL]
        for stop in sorted(stops, key=attrgetter("since")):
            if stop.since <= until and trouble.since <= stop.over:
                until = max(until, stop.until)
        return until

    def met(
        self, faults: Collection[str], others: Collection[str], since: float, until: float
    ) -> bool:
        """Return whether a fault began between these times while effects of others might show."""
        begun = [
            each.since
            for each in self._troubles
            if each.fault in faults and since <= each.since <= until
        ]
        return any(self.in_force(at, at, only=others) is not None for at in begun)

    def number_of(self, fault: str, since: float, until: float) -> int:
        """Return how often this fault went wrong between these times; its effects do not count."""
        return sum(
            name == fault and begin <= until and since <= over
            for name, begin, over, _ in self._troubles
        )

    def begin_again(self) -> None:
        """Forget what was counted."""
        self.judged.clear()
        self.used.clear()
