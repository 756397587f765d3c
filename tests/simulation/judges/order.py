"""Says when a message that is not stored may come before an earlier one of its channel that is."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple

from tests.simulation.oracle import Publish
from tests.simulation.schedule import Occurrence, Schedule
from tests.simulation.store.groups import Group

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


class _Away(NamedTuple):
    """That a store was away: since when, until when, and which one."""

    since: float
    until: float
    store: Group


class Order:
    """Knows for how long stores were away."""

    def __init__(self) -> None:
        self._occurrences: Sequence[Occurrence] = ()
        self._struck: Mapping[float, Group] = {}
        # Returns which stores a message needs to come to a receiver; None if it may need any.
        self.stores_of: Callable[[str, Publish], Collection[Group] | None] = lambda *_: None

    def know(self, schedule: Schedule, struck: Mapping[float, Group]) -> None:
        """Note what goes wrong, and, by its time, which store each fault will have concerned."""
        self._occurrences, self._struck = schedule.occurrences, struck

    def _away(self) -> list[_Away]:
        found = []
        for each in self._occurrences:
            name, store = each.fault.__name__, self._struck.get(each.at_s)
            # A connection may lead to a client.
            if name in _AWAY and store is not None:
                until = each.at_s + each.duration_s + _AWAY[name]
                found.append(_Away(each.at_s, until, store))
        for each in self._occurrences:
            if each.fault.__name__.startswith(_STOPS):
                found = [_prolonged(away, each) for away in found]
        return found

    def may_overtake(self, receiver: str, before: Publish, later: Publish) -> bool:
        """Return whether a message may come before an earlier one of its publisher and channel.

        One that is not stored waits for a stored one for five seconds at most, and not for one
        that others have waited for in vain.
        """
        if later.is_durable or not before.is_durable:
            return False
        needed = self.stores_of(receiver, before)
        return any(
            each.since - _ON_ITS_WAY_S <= before.accepted_at <= each.until - _WAIT_S
            and later.begun_at <= each.until
            for each in self._away()
            if needed is None or each.store in needed
        )


def _prolonged(away: _Away, stop: Occurrence) -> _Away:
    """A server that does not run counts no time, so what it waits for ends later."""
    if away.since <= stop.at_s + stop.duration_s and stop.at_s <= away.until:
        return away._replace(until=away.until + stop.duration_s)
    return away
