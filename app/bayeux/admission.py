"""Admission of handshakes: a token bucket, closed while the event loop lags."""

from collections.abc import Callable
from typing import ClassVar


class Admission:
    """Spreads the handshakes of clients that all come back at once after a restart."""

    # Refused clients come back within this time, each at a random moment.
    SPREAD_S: ClassVar[float] = 5.0

    def __init__(self, rate: float, random: Callable[[], float]) -> None:
        self._rate = rate
        self._random = random
        self._tokens = rate
        self._filled_at = 0.0
        # Set by the web layer while its event loop lags.
        self.is_lagging = False

    def admit(self, now: float) -> bool:
        """Return whether one more handshake is admitted."""
        if self.is_lagging:
            return False
        self._tokens = min(self._rate, self._tokens + (now - self._filled_at) * self._rate)
        self._filled_at = now
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    def delay_s(self) -> float:
        """Return a random delay after which a refused client should retry."""
        return 0.5 + self._random() * self.SPREAD_S
