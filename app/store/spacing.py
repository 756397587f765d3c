"""How closely frames follow each other, and reads of frames.

Each costs the process that writes it a call, and each reader a turn of its event loop, which is
much more than a small message costs.
"""

from typing import Final

# The mean time between many of them, at least.
PAUSE_S: Final = 0.02
# How many may follow each other at once after a while without any.
AT_ONCE: Final = 5


class Spacing:
    """Says when the next one may come: some at once, and then one in each pause."""

    def __init__(self) -> None:
        # When the next one would come if none came early.
        self._next_at = 0.0

    @property
    def due(self) -> float:
        """When the next one may come."""
        return self._next_at - (AT_ONCE - 1) * PAUSE_S

    def take(self, now: float) -> None:
        """Take note of one, which may come before it is due."""
        self._next_at = min(max(self._next_at, now) + PAUSE_S, now + AT_ONCE * PAUSE_S)
