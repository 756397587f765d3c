"""The stored form of trails. An attempt omits what it shares with the previous one."""

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from holdfast.delivery.messages.trails import MAX_TEXT, Attempt, Trail, shortened, thinned


def pack_trail(trail: Trail, most: int) -> bytes:
    """Pack the trail into at most `most` bytes, with fewer attempts and texts if necessary."""
    packed = _pack(trail)
    for longest in (MAX_TEXT // 4, 0):
        while len(packed) > most and len(trail) > 2:
            trail = thinned(trail)
            packed = _pack(trail)
        if len(packed) > most:
            trail = tuple([shortened(attempt, longest) for attempt in trail])
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
        if attempt.receiver or len(before) > len(end):
            # Most attempts name no receiver, and older records have no field for one.
            end.append(attempt.receiver)
        own = len(end)
        while own and len(before) == len(end) and end[own - 1] == before[own - 1]:
            own -= 1
        rows.append([attempt.n, attempt.time - time, attempt.latency, *end[:own]])
        before, time = end, attempt.time
    return orjson.dumps(rows)


def unpack_trail(packed: bytes) -> Trail:
    """Undo `pack_trail`."""
    return unpack_trail_rows(orjson.loads(packed))


def unpack_trail_rows(rows: Iterable[Sequence[Any]]) -> Trail:
    """Read a trail from parsed JSON."""
    trail: list[Attempt] = []
    end: list[Any] = []
    time = 0
    for n, after, latency, *own in rows:
        end = own + end[len(own) :]
        outcome, code, text, transport, node, *receiver = end
        time += after
        code = outcome if code == 0 else code
        trail.append(Attempt(n, time, node, transport, outcome, latency, code, text, *receiver))
    return tuple(trail)
