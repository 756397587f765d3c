"""What became of each time that a message was handed to one receiver, if it did not succeed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

# Of more than these, the first and the last ones are remembered.
MAX_ATTEMPTS = 10
# Of what is said about one attempt, in bytes as JSON has it.
MAX_TEXT = 100
# No character takes more of them.
_WIDEST = 6

# Outcomes that no code stands for.
LOST_REPLY = "lost reply"
NOT_WRITTEN = "not written"
RETURNED = "returned"
TAKEN_OVER = "taken over"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One hand-over that did not succeed; `time` in ms since 1970, `latency` in ms."""

    n: int
    time: int
    node: str = ""
    transport: str = ""
    # The code of the failure, or one of the words above.
    outcome: str = ""
    latency: int | None = None
    # What the receiver gave as its reason, if it gave one, or what was found about it.
    code: str = ""
    text: str = ""

    def to_json(self) -> dict[str, Any]:
        """The attempt as JSON has it."""
        return {
            "n": self.n,
            "time": self.time,
            "node": self.node,
            "transport": self.transport,
            "outcome": self.outcome,
            "latency": self.latency,
            "code": self.code,
            "text": self.text,
        }


# An immutable one, for what was handed over together has its history in common.
Trail = tuple[Attempt, ...]


def extended(trail: Trail, attempt: Attempt) -> Trail:
    """The history with one more attempt, without one from its middle if it becomes too long."""
    if len(trail) >= MAX_ATTEMPTS:
        trail = _thinned(trail)
    return (*trail, attempt)


def first_and_last(attempts: Sequence[Attempt]) -> Trail:
    """How it began and how it ended, if there were too many to keep."""
    half = MAX_ATTEMPTS // 2
    is_long = len(attempts) > MAX_ATTEMPTS
    kept = (*attempts[:half], *attempts[-half:]) if is_long else attempts
    return tuple([_short(attempt, MAX_TEXT) for attempt in kept])


def _thinned(trail: Trail) -> Trail:
    middle = len(trail) // 2
    return (*trail[:middle], *trail[middle + 1 :])


def _short(attempt: Attempt, most: int) -> Attempt:
    text = clipped(attempt.text, most)
    return attempt if text == attempt.text else replace(attempt, text=text)


def clipped(text: str, most: int) -> str:
    """As much from the beginning of the text as takes at most so many bytes as JSON has it."""
    if len(text) * _WIDEST <= most:
        return text.encode(errors="replace").decode()
    text = text[:most].encode(errors="replace").decode()
    while (excess := len(orjson.dumps(text)) - 2 - most) > 0:
        text = text[: -max(excess // _WIDEST, 1)]
    return text


# As they stand in the store, in few bytes: what an attempt has in common
# with the one before it is left out.


def pack(trail: Trail, most: int) -> bytes:
    """The history in so many bytes: with fewer attempts and fewer words, if need be."""
    packed = _pack(trail)
    for longest in (MAX_TEXT // 4, 0):
        while len(packed) > most and len(trail) > 2:
            trail = _thinned(trail)
            packed = _pack(trail)
        if len(packed) > most:
            trail = tuple([_short(attempt, longest) for attempt in trail])
            packed = _pack(trail)
    return packed


def _pack(trail: Trail) -> bytes:
    rows: list[list[object]] = []
    before: list[object] = []
    time = 0
    for attempt in trail:
        code = 0 if attempt.code == attempt.outcome else attempt.code
        end: list[object] = [
            attempt.outcome,
            code,
            attempt.text,
            attempt.transport,
            attempt.node,
        ]
        told = len(end)
        while before and told and end[told - 1] == before[told - 1]:
            told -= 1
        rows.append([attempt.n, attempt.time - time, attempt.latency, *end[:told]])
        before, time = end, attempt.time
    return orjson.dumps(rows)


def unpack(packed: bytes) -> Trail:
    """The history again."""
    return unpack_rows(orjson.loads(packed))


def unpack_rows(rows: Iterable[Sequence[Any]]) -> Trail:
    """The history as it was read from JSON."""
    trail: list[Attempt] = []
    end: list[Any] = []
    time = 0
    for n, after, latency, *told in rows:
        end = told + end[len(told) :]
        outcome, code, text, transport, node = end
        time += after
        code = outcome if code == 0 else code
        trail.append(Attempt(n, time, node, transport, outcome, latency, code, text))
    return tuple(trail)
