"""Says when a message that is not stored may come before an earlier one of its channel that is."""

from typing import Final

from tests.simulation.oracle import Publish
from tests.simulation.schedule import Schedule

# Faults while which a server cannot reach a store, or it takes nothing, and for how much longer.
_AWAY: Final = {
    "freeze_store": 3.0,
    "end_store": 3.0,
    "cut_power_of_store": 3.0,
    "cut_power": 3.0,
    "crash_store_soon": 3.0,
    "part_from_store": 3.0,
    "fill_store": 3.0,
    "fill_disk": 3.0,
    "hold_reading": 3.0,
    # A connection is given up when it has been silent for five seconds.
    "lose_connection": 8.0,
    "lose_direction": 8.0,
    "hold_connection": 8.0,
}
# How the names of faults begin while which a server does not run.
_STOPS: Final = ("suspend_server", "freeze_server")
# For so long such messages wait for stored ones at least.
_WAIT_S: Final = 5.0
# How long before a fault a message may have been accepted that it holds up.
_ON_ITS_WAY_S: Final = 2.0


class Order:
    """Knows for how long stores were away."""

    def __init__(self) -> None:
        self._away: list[tuple[float, float]] = []

    def know(self, schedule: Schedule) -> None:
        """Note what will go wrong."""
        for each in schedule.occurrences:
            longer_s = _AWAY.get(each.fault.__name__)
            if longer_s is not None:
                self._away.append((each.at_s, each.at_s + each.duration_s + longer_s))
        for each in schedule.occurrences:
            if each.fault.__name__.startswith(_STOPS):
                self._prolong(each.at_s, each.duration_s)

    def _prolong(self, at_s: float, duration_s: float) -> None:
        """A server that does not run counts no time, so what it waits for ends later."""
        self._away = [
            (begin, end + duration_s if begin <= at_s + duration_s and at_s <= end else end)
            for begin, end in self._away
        ]

    def may_overtake(self, before: Publish, later: Publish) -> bool:
        """Return whether a message may come before an earlier one of its publisher and channel.

        One that is not stored waits for a stored one for five seconds at most, and not for one
        that others have waited for in vain.
        """
        if later.is_durable or not before.is_durable:
            return False
        return any(
            begin - _ON_ITS_WAY_S <= before.accepted_at <= end - _WAIT_S and later.begun_at <= end
            for begin, end in self._away
        )
