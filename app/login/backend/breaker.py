"""Stops questions to an application that fails again and again, until it answers once."""

from collections.abc import Callable
from typing import Final

# After how many failures in a row, and for how long, in seconds.
_FAILURES: Final = 5
PAUSE_S: Final = 5.0


class Breaker:
    """Counts failures in a row. After a pause, one question tries whether there are answers again.

    Args:
        clock: Returns monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failures = 0
        self._pauses_until = 0.0
        self._is_trying = False

    @property
    def is_open(self) -> bool:
        """Whether the application counts as broken."""
        return self._failures >= _FAILURES

    def lets_ask(self) -> bool:
        """Return whether a question may be asked; then `heard` or `gave_up` must follow."""
        if not self.is_open:
            return True
        if self._is_trying or self._clock() < self._pauses_until:
            return False
        self._is_trying = True
        return True

    def heard(self, *, is_answer: bool) -> None:
        """Note how a question ended: with an answer, or with a failure of the application."""
        self._is_trying = False
        if is_answer:
            self._failures = 0
            return
        self._failures += 1
        if self.is_open:
            self._pauses_until = self._clock() + PAUSE_S

    def gave_up(self) -> None:
        """Note that a question ended otherwise, which says nothing about the application."""
        self._is_trying = False
