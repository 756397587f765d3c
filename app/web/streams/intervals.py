"""Numbers of intervals, by which caches tell requests of readers that wait from earlier ones."""

import time
from typing import Final

# Proxies may answer many readers with one response within such an interval.
_INTERVAL_S: Final = 20
_FIRST_INTERVAL_S: Final = 1_728_432_000  # 2024-10-09


def interval(known: str) -> str:
    """Return the number of the present interval; always another one than the client knows."""
    now = int(time.time() - _FIRST_INTERVAL_S) // _INTERVAL_S
    if known.isascii() and known.isdecimal() and len(known) <= len(str(now)):
        now = max(now, int(known) + 1)
    return str(now)
