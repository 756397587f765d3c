"""The store's clock, by which publish keys age."""

from collections.abc import Callable


class StoreClock:
    """Counts the seconds that servers have run with this store; between them it stands still.

    It depends on no wall clock, which may jump by a day.

    Args:
        monotonic: The clock of this process.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._began_at = monotonic()

    def __call__(self) -> int:
        return int(self._monotonic() - self._began_at)

    def go_on(self, stored: int) -> None:
        """Continue from the time in the store, unless it was emptied meanwhile."""
        self._began_at = min(self._began_at, self._monotonic() - stored)
