"""Reports of how long something took."""

from collections import Counter, defaultdict
from fractions import Fraction
from math import ceil

from tests.pipeline.bookkeeping.figures import longest, moment, of_histogram, percentile
from tests.pipeline.bookkeeping.ledger import Copy, End, Ledger
from tests.pipeline.bookkeeping.rows import (
    DONE,
    HOUR_US,
    Key,
    Row,
    Rows,
    by_channel,
    channel_of,
    deliveries,
    ended_us,
    id_us,
    share,
)

_PARTS = (50, 95, 99)
_OF_REQUESTS = ("asked", "answered", "no_responders", "timeout", "refused", "abandoned", "unsent")
_REQUEST_COUNTS = (*_OF_REQUESTS, "late", "duplicate", "denied")


def latency(books: Ledger) -> Rows:
    rows: Rows = {}
    for channel, copies in by_channel(books.copies).items():
        times: dict[str, list[int]] = {
            "delivery": deliveries(copies),
            "answer": [],
            "critical": [],
        }
        for copy in copies:
            if not copy.generation and copy.end is End.ACKED and copy.stay.hand_overs:
                times["answer"].append(_answer_us(copy))
                times["critical"].append(ended_us(copy) - id_us(copy.message))
        if not times["delivery"] and not times["answer"]:
            continue
        row: Row = {"n": len(times["delivery"]), "acked": len(times["answer"])}
        for what, known in times.items():
            for part in _PARTS:
                row[f"{what}_p{part}"] = of_histogram(part, known)
            row[f"{what}_max"] = of_histogram(100, known)
        rows[channel,] = row
    return rows


def holdback_advice(books: Ledger) -> Rows:
    rows: Rows = {}
    for channel, copies in by_channel(books.copies).items():
        tried = [
            copy
            for copy in copies
            if copy.end is not None
            and any(stay.refusals for stay in copy.stays)
            and (copy.attempts > 1 or copy.end in DONE)
        ]
        through = [copy for copy in tried if copy.end in DONE]
        times = [ended_us(copy) - copy.first_hand_over.us for copy in through]
        extra = [max(copy.attempts - 1, 1) for copy in through]
        each = [*map(Fraction, times, extra)]
        attempts = sorted(copy.attempts for copy in through)
        if tried:
            rows[channel,] = {
                "retried": len(tried),
                "succeeded": len(through),
                "success_p50": percentile("0.5", times),
                "backoff": percentile("0.9", each),
                "max_attempts": _most_of(0.99, attempts),
                "share": share(len(through), len(tried)),
            }
    return rows


def _answer_us(copy: Copy) -> int:
    """Return the time from the first hand-over in its last queue to its end."""
    return ended_us(copy) - copy.stay.hand_overs[0].us


def _most_of(part: float, numbers: list[int]) -> int | None:
    """The percentile between two neighbours, rounded up."""
    if not numbers:
        return None
    place = (len(numbers) - 1) * part
    low = int(place)
    high = min(low + 1, len(numbers) - 1)
    return ceil(round(numbers[low] + (numbers[high] - numbers[low]) * (place - low), 6))


def slow_receivers(books: Ledger) -> Rows:
    by: dict[str, list[Copy]] = defaultdict(list)
    for copy in books.copies:
        if copy.end is End.ACKED and copy.stay.hand_overs:
            by[copy.receiver].append(copy)
    rows: Rows = {}
    for receiver, copies in by.items():
        times = [*map(_answer_us, copies)]
        if len(copies) >= 10:
            rows[receiver,] = {
                "acked": len(copies),
                "channels": len({channel_of(copy.message) for copy in copies}),
                "ack_p50": percentile("0.5", times),
                "ack_p95": percentile("0.95", times),
                "ack_max": longest(times),
            }
    return rows


def lag(books: Ledger) -> Rows:
    times: dict[Key, list[int]] = defaultdict(list)
    for copy in books.copies:
        if copy.end in DONE and not copy.generation:
            us = ended_us(copy)
            times[moment(us - us % HOUR_US), copy.receiver].append(us - id_us(copy.message))
    return {
        key: {
            "acked": len(known),
            "lag_p50": percentile("0.5", known),
            "lag_p95": percentile("0.95", known),
            "lag_max": longest(known),
        }
        for key, known in times.items()
    }


def requests(books: Ledger) -> Rows:
    by = defaultdict(list)
    for step in books.steps:
        by[step.channel].append(step)
    rows: Rows = {}
    for channel, steps in by.items():
        counts = Counter(step.what for step in steps)
        times = [step.took.us for step in steps if step.what == "answered" and step.took]
        row: Row = {name: counts[name] for name in _REQUEST_COUNTS}
        row |= {f"answer_p{part}": percentile(f"0.{part}", times) for part in _PARTS}
        rows[channel,] = row | {"share": share(counts["answered"], counts["asked"])}
    return rows
