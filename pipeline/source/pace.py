"""When readers that go on begin their next batch: each costs time, and makes files."""

import math

# This number of frames is worth a batch at once.
ENOUGH = 200


class Pace:
    """Decides when to begin the next batch."""

    def __init__(self, every_s: float, enough: int = ENOUGH) -> None:
        self._every_s = every_s
        self._enough = enough
        # The first begins at once.
        self._begun = -math.inf

    def is_due(self, waiting: int, now: float) -> bool:
        """Return whether to begin a batch, given the frames that wait and the time in seconds."""
        if not waiting or (waiting < self._enough and now < self._begun + self._every_s):
            return False
        self._begun = now
        return True
