"""Schedules Python's garbage collector so that no collection keeps clients waiting.

Sessions and messages are freed without it: it only finds cycles that extensions and libraries leave
behind. There are three kinds of collections:

- Python looks at new objects without our doing, which takes a fifth of a millisecond, or one if
  each has a hundred entries.
- In a quiet second, after some of these, or when many entries have been queued, everything that is
  not exempt is collected.
- In a quiet minute, or after very many new objects, nothing is exempt. This takes 125 ms with ten
  million waiting entries. It bounds the memory of cycles that were exempt when they were left.

Objects created at start are exempt, and so are all survivors of a collection that took long or
followed many entries. In a burst, when the server works most of the time or makes many objects,
those that are no longer new become exempt at once: a collection would keep many clients waiting. So
the next collection is short, however many sessions there are and however many entries wait for
them. Python counts only new objects, but also looks at each entry of a new queue, and a thousand
new queues soon hold ten million.
"""

import gc
from collections.abc import Callable
from time import thread_time

# Python collects new objects when there are this many more than were freed.
_YOUNG = 500
# Python never starts any other collection without our doing.
_NEVER = 2**31 - 1
# The server is quiet after this many beats in a row with less work (in seconds) than this.
_LITTLE_S = 0.005
_QUIET_SECOND, _QUIET_MINUTE = 10, 600
# After this many new objects, the next collection cannot wait for a quiet second or minute. The
# second number takes several busy minutes, because the pause is long.
_MANY, _VERY_MANY = 20 * _YOUNG, 100_000 * _YOUNG
# A beat with more work (in seconds), or more new objects, than this is part of a burst. On a busy
# machine, the server may not get much time.
_MUCH_S, _MUCH_NEW = 0.05, 20 * _YOUNG
# In seconds. The survivors of a collection that takes longer become exempt.
_LONG_S = 0.004
# Queues with this many new entries in total become exempt too; a collection takes 6 ms to look at
# them.
_MANY_ENTRIES = 500_000


class Collector:
    """Runs the garbage collector at times that suit a server.

    Args:
        worked_s: Returns the processor time of this thread, in seconds.
    """

    def __init__(self, worked_s: Callable[[], float] = thread_time) -> None:
        self._worked_s = worked_s
        self._seen_s = 0.0
        self._quiet_beats = 0
        # New objects that Python had not collected before a collection of this class.
        self._uncollected = 0
        # How many new objects there had been at the last collection, ...
        self._collected_at = self._made()
        # ... and at the last one without exemptions.
        self._whole_at = self._collected_at
        # How many new objects there had been at the last beat.
        self._made_before = self._collected_at
        # How many entries had been queued at the last collection.
        self._queued = 0
        # Whether more is exempt than the objects made at start.
        self._is_exempting = False

    def begin(self) -> None:
        """Let Python collect only new objects by itself. Call before queues are restored.

        Otherwise it looks at all restored messages again whenever there are a quarter more.
        """
        gc.collect()
        gc.set_threshold(_YOUNG, _NEVER, _NEVER)

    def exempt(self) -> None:
        """Exempt the objects made at start."""
        gc.freeze()

    def beat(self, queued: int) -> None:
        """Run a collection if one is due. Call ten times a second.

        Args:
            queued: How many entries have been added to queues since the start.
        """
        worked_s = self._worked_s() - self._seen_s
        self._seen_s += worked_s
        made = self._made() - self._made_before
        self._made_before += made
        self._quiet_beats = self._quiet_beats + 1 if worked_s < _LITTLE_S else 0
        if self._is_exempting and self._is_due(self._whole_at, _QUIET_MINUTE, _VERY_MANY):
            gc.unfreeze()
            self._is_exempting = False
            self._collect(queued)
            self._whole_at = self._collected_at
        elif worked_s > _MUCH_S or made > _MUCH_NEW:
            self._exempt_all(queued)
        elif self._has_many(queued) or self._is_due(self._collected_at, _QUIET_SECOND, _MANY):
            self._collect(queued)

    def _is_due(self, last: int, quiet_beats: int, many: int) -> bool:
        made = self._made() - last
        return made >= many or (made > 0 and self._quiet_beats >= quiet_beats)

    def _made(self) -> int:
        """Return how many new objects were collected, whether or not they were garbage."""
        return _YOUNG * _times_young() + self._uncollected

    def _has_many(self, queued: int) -> bool:
        return queued - self._queued >= _MANY_ENTRIES

    def _collect(self, queued: int) -> None:
        began_s = self._worked_s()
        self._count_uncollected()
        gc.collect()
        # Its work does not count as the server's.
        self._seen_s = self._worked_s()
        self._collected_at = self._made()
        if self._seen_s - began_s > _LONG_S or self._has_many(queued):
            self._exempt_all(queued)
        self._queued = queued

    def _exempt_all(self, queued: int) -> None:
        self._count_uncollected()
        gc.freeze()
        self._is_exempting = True
        self._collected_at, self._queued = self._made(), queued

    def _count_uncollected(self) -> None:
        """Count the new objects that Python will not collect by itself."""
        self._uncollected += gc.get_count()[0]


def _times_young() -> int:
    times: int = gc.get_stats()[0]["collections"]
    return times
