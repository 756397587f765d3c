"""How closely frames follow each other, and reads of frames.

Each costs the process that writes it a call, and each reader a turn of its event loop, which is
much more than a small message costs.
"""

from typing import Final

# The mean time between many of them, at least.
PAUSE_S: Final = 0.02
# How many may follow each other at once after a while without any.
AT_ONCE: Final = 5
# After so many pauses in a row that brought nothing together, so many come at once; after each
# further one twice as many, so many times.
USELESS: Final = 4
AFTER_USELESS: Final = 8
_MOST_DOUBLINGS: Final = 7


class Spacing:
    """Says when the next one may come: some at once, and then one in each pause.

    Where each answers the one before, pauses bring nothing together, so few are made.
    """

    def __init__(self) -> None:
        # When the next one would come if none came early.
        self._next_at = 0.0
        # How many pauses in a row brought nothing together. How many may come at once after these.
        self._useless = 0
        self._at_once = 0

    @property
    def due(self) -> float:
        """When the next one may come."""
        return 0.0 if self._at_once else self._next_at - (AT_ONCE - 1) * PAUSE_S

    def take(self, now: float) -> None:
        """Take note of one, which may come before it is due."""
        if self._at_once:
            self._at_once -= 1
        self._next_at = min(max(self._next_at, now) + PAUSE_S, now + AT_ONCE * PAUSE_S)

    def waited(self, *, is_useful: bool) -> None:
        """Take note of whether the pause before the last one brought some together."""
        self._useless = 0 if is_useful else self._useless + 1
        if self._useless >= USELESS:
            self._at_once = AFTER_USELESS << min(self._useless - USELESS, _MOST_DOUBLINGS)
