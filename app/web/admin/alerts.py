"""Decides which alerts are raised. Each is raised and cleared once, however its value moves."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

from pydantic import Field

from holdfast.store.format.operator_input import Ms, values_of
from holdfast.web.admin.alert_limits import Alert, AlertLimits

# An alert is cleared only when its value is well below the limit.
_CLEAR_SHARE = 0.8
# These are states, not values that go up and down: they are cleared at once.
_STATES = frozenset((Alert.REPLICAS, Alert.FILES))


class Measured(NamedTuple):
    """The value of an alert now, what it means, and what to do about it."""

    value: float
    reason: str = ""
    next: str = ""


@dataclass(frozen=True, slots=True)
class RaisedAlert:
    """One alert that is raised."""

    alert: Annotated[Alert, values_of(Alert), Field(description="The name of its limit.")]
    since: Annotated[Ms, Field(description="When it was raised.")]
    reason: Annotated[str, Field(description="What reached the limit.")]
    next: Annotated[str, Field(description="What to do about it.")]


class Alerts:
    """Compares what is measured with the limits, and keeps what is raised."""

    def __init__(self) -> None:
        self._raised: dict[Alert, RaisedAlert] = {}
        # Since when the value of a raised alert has been low enough, in running time.
        self._low_since: dict[Alert, float] = {}
        # How often each was raised.
        self.times: Counter[Alert] = Counter()
        # The latest measured values.
        self.values = dict.fromkeys(Alert, 0.0)

    def raised(self) -> list[RaisedAlert]:
        """Return the raised alerts, in the order of their urgency."""
        return [self._raised[each] for each in Alert if each in self._raised]

    def judge(
        self, alert: Alert, measured: Measured, limits: AlertLimits, now: float, now_ms: int
    ) -> RaisedAlert | None:
        """Record a value. Returns the alert if this raises or clears it."""
        self.values[alert] = measured.value
        limit, before = limits.of(alert), self._raised.get(alert)
        if limit and measured.value >= limit:
            self._low_since.pop(alert, None)
            since = now_ms if before is None else before.since
            self._raised[alert] = RaisedAlert(alert, since, measured.reason, measured.next)
            if before is not None:
                return None
            self.times[alert] += 1
            return self._raised[alert]
        if before is None or not self._is_over(alert, measured.value, limits, now):
            return None
        del self._raised[alert]
        self._low_since.pop(alert, None)
        return replace(before, next="")

    def is_raised(self, alert: Alert) -> bool:
        return alert in self._raised

    def _is_over(self, alert: Alert, value: float, limits: AlertLimits, now: float) -> bool:
        limit = limits.of(alert)
        if not limit:
            # It was switched off in the meantime.
            return True
        if value > limit * _CLEAR_SHARE:
            self._low_since.pop(alert, None)
            return False
        since = self._low_since.setdefault(alert, now)
        return alert in _STATES or now - since >= limits.clear_after / 1000
