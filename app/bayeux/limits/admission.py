"""Admission of handshakes: a token bucket that is closed while the event loop lags."""

import logging
from collections.abc import Callable
from enum import Enum
from typing import ClassVar

from holdfast.units import counted

log = logging.getLogger(__name__)

# How often the log reports handshakes refused because of lag.
_LOGGED_EVERY_S = 60.0


class AdmissionRefusal(Enum):
    """Why a handshake was not admitted."""

    RATE = "rate"
    LAG = "lag"


class Admission:
    """Spreads out the handshakes of clients that all return after a restart."""

    # Refused clients return within this time, each at a random moment.
    SPREAD_S: ClassVar[float] = 5.0

    def __init__(self, rate: float, random: Callable[[], float]) -> None:
        self._rate = rate
        self._random = random
        self._tokens = rate
        self._filled_at = 0.0
        # Set by the web layer while its event loop lags.
        self.is_lagging = False
        # How many handshakes were refused, by reason, and how many because of lag since the last
        # log line.
        self.refused = dict.fromkeys(AdmissionRefusal, 0)
        self._unreported = 0
        self._reported_at = -_LOGGED_EVERY_S

    def admit(self, now: float) -> bool:
        """Return whether one more handshake is admitted."""
        if self.is_lagging:
            self.refused[AdmissionRefusal.LAG] += 1
            self._unreported += 1
            return False
        self._tokens = min(self._rate, self._tokens + (now - self._filled_at) * self._rate)
        self._filled_at = now
        if self._tokens < 1.0:
            self.refused[AdmissionRefusal.RATE] += 1
            return False
        self._tokens -= 1.0
        return True

    def beat(self, now: float) -> None:
        """Log handshakes refused because of lag, at most once a minute."""
        if self._unreported and now - self._reported_at >= _LOGGED_EVERY_S:
            refused = counted(self._unreported, "handshake")
            log.warning("the server has too much to do, and refused %s", refused)
            self._unreported, self._reported_at = 0, now

    def spread_s(self, many: int) -> float:
        """Return a random delay that lets this many clients return no faster than admitted."""
        return self._random() * many / self._rate

    def delay_s(self) -> float:
        """Return a random delay after which a refused client should retry."""
        return 0.5 + self._random() * self.SPREAD_S
