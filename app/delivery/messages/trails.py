"""The trail of an entry: its failed hand-overs. `dispatcher` decides when the next one follows."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import orjson

# In attempts. Longer trails keep the first and the last ones. `max_attempts` limits hand-overs.
LONGEST_TRAIL = 10
# Longest text of one attempt, in bytes of JSON.
MAX_TEXT = 100
# How many bytes one character can take in JSON.
_WIDEST = 6

# Outcomes other than error codes.
LOST_REPLY = "lost reply"
NOT_WRITTEN = "not written"
RETURNED = "returned"
TAKEN_OVER = "taken over"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One failed hand-over. `time` is in ms since 1970, `latency` in ms."""

    n: int
    time: int
    node: str = ""
    transport: str = ""
    # The error code, or one of the outcomes above.
    outcome: str = ""
    latency: int | None = None
    # The reason, from the receiver or the server.
    code: str = ""
    text: str = ""
    # The `key` of the receiver, if the message was handed over to several.
    receiver: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the attempt as a JSON object."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


# Immutable, because entries that were handed over together share it.
Trail = tuple[Attempt, ...]


def extended(trail: Trail, attempt: Attempt) -> Trail:
    """Return the trail with one more attempt; drops one in the middle if it is too long."""
    if len(trail) >= LONGEST_TRAIL:
        trail = thinned(trail)
    return (*trail, attempt)


def first_and_last(attempts: Sequence[Attempt]) -> Trail:
    """Return the first and last attempts if there are too many to keep."""
    half = LONGEST_TRAIL // 2
    is_long = len(attempts) > LONGEST_TRAIL
    kept = (*attempts[:half], *attempts[-half:]) if is_long else attempts
    return tuple([shortened(attempt, MAX_TEXT) for attempt in kept])


def thinned(trail: Trail) -> Trail:
    """Return the trail without the attempt in its middle."""
    middle = len(trail) // 2
    return (*trail[:middle], *trail[middle + 1 :])


def shortened(attempt: Attempt, most: int) -> Attempt:
    """Return the attempt with its text cut to this many bytes."""
    text = clipped(attempt.text, most)
    return attempt if text == attempt.text else replace(attempt, text=text)


def clipped(text: str, most: int) -> str:
    """Return the longest prefix of the text that takes at most `most` bytes of JSON."""
    if len(text) * _WIDEST <= most:
        return text.encode(errors="replace").decode()
    text = text[:most].encode(errors="replace").decode()
    while (excess := len(orjson.dumps(text)) - 2 - most) > 0:
        text = text[: -max(excess // _WIDEST, 1)]
    return text
