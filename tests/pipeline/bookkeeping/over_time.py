"""Reports of what happened when: by minute, hour or day."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.pipeline.bookkeeping.figures import moment, number, of_histogram
from tests.pipeline.bookkeeping.ledger import End, Ledger, Message, Noted
from tests.pipeline.bookkeeping.rows import (
    DAY_US,
    HOUR_US,
    MINUTE_US,
    Key,
    Row,
    Rows,
    by_channel,
    deliveries,
    ended_us,
    id_us,
    minute_of,
)
from tests.pipeline.bookkeeping.stamps import NODE

_OF_MINUTES = ("handed", "ended", "dead")


def _events(books: Ledger) -> Iterator[tuple[str, int]]:
    for copy in books.copies:
        for stay in copy.stays:
            yield from (("handed", span.us) for span in stay.hand_overs)
        if copy.end not in (None, End.LOST):
            yield "ended", ended_us(copy)
        if copy.end is End.DEAD:
            yield "dead", ended_us(copy)


def throughput(books: Ledger) -> Rows:
    """By minute, also if nothing but moves and refusals happened in it."""
    counts = Counter((minute_of(us), what) for what, us in _events(books))
    sent: dict[int, list[Message]] = defaultdict(list)
    for message in books.messages:
        sent[minute_of(id_us(message))].append(message)
    copies = Counter(minute_of(id_us(c.message)) for c in books.copies if not c.generation)
    return {
        (moment(minute), NODE): {
            "published": len(sent[minute]),
            "copies": copies[minute],
            "bytes": sum(message.size for message in sent[minute]),
            **{what: counts[minute, what] for what in _OF_MINUTES},
        }
        for minute in {*map(minute_of, books.about_messages_us)}
    }


def publishers(books: Ledger) -> Rows:
    by: dict[str | None, list[Message]] = defaultdict(list)
    for message in books.messages:
        by[message.sender].append(message)
    copies = Counter(copy.message.sender for copy in books.copies if not copy.generation)
    rows: Rows = {}
    for sender, messages in by.items():
        minutes = Counter(minute_of(id_us(message)) for message in messages)
        most = max(minutes.values())
        busiest = min(minute for minute, n in minutes.items() if n == most)
        rows[sender,] = {
            "published": len(messages),
            "copies": copies[sender],
            "bytes": sum(message.size for message in messages),
            "most_per_minute": most,
            "busiest": moment(busiest),
        }
    return rows


def backlog(books: Ledger) -> Rows:
    """By hour: what came and went, and what waited at the ends of its minutes."""
    came = [each.replayed.us if each.replayed else id_us(each.message) for each in books.copies]
    went = [ended_us(copy) for copy in books.copies if copy.end is not None]
    minutes: dict[int, set[int]] = defaultdict(set)
    for us in (*came, *went):
        minutes[us - us % HOUR_US].add(minute_of(us))
    rows: Rows = {}
    for hour, known in minutes.items():
        ends = [minute + MINUTE_US for minute in sorted(known)]
        waiting = [number(came, 0, end) - number(went, 0, end) for end in ends]
        rows[moment(hour),] = {
            "came": number(came, hour, hour + HOUR_US),
            "went": number(went, hour, hour + HOUR_US),
            "most": max(waiting),
            "waiting": waiting[-1],
        }
    return rows


def trend(books: Ledger) -> Rows:
    """By channel, if all happened within the last hour, as in a test."""
    rows: Rows = {}
    for channel, copies in by_channel(books.copies).items():
        waiting = sum(copy.end is None for copy in copies)
        rows[channel,] = {
            "waiting": waiting,
            "hour_before": 0,
            "day_before": 0,
            "came": len(copies),
            "went": len(copies) - waiting,
            "empty": None,
        }
    return rows


def refused_publishes(books: Ledger) -> Rows:
    noted: dict[Key, list[Noted]] = defaultdict(list)
    for each in books.noted:
        noted[each.reason, each.channel].append(each)
    return {
        key: {
            "refused": sum(each.number for each in known),
            "first": moment(min(each.us for each in known)),
            "last": moment(max(each.us for each in known)),
        }
        for key, known in noted.items()
    }


def days(books: Ledger) -> Rows:
    found = {day: _day(books, day) for day in {id_us(each) // DAY_US for each in books.messages}}
    rows: Rows = {}
    for day, row in found.items():
        ratios = {
            f"{short}_to_{when}_before": _ratio(row[name], found.get(day - back, {}).get(name))
            for when, back in (("day", 1), ("week", 7))
            for short, name in (("copies", "copies"), ("dead", "dead"), ("p95", "delivery_p95"))
        }
        rows[moment(day * DAY_US),] = row | ratios
    return rows


def _day(books: Ledger, day: int) -> Row:
    copies = [copy for copy in books.copies if id_us(copy.message) // DAY_US == day]
    ends = Counter(copy.end for copy in copies)
    return {
        "published": sum(id_us(message) // DAY_US == day for message in books.messages),
        "copies": sum(not copy.generation for copy in copies),
        "acked": ends[End.ACKED] + ends[End.WRITTEN],
        "dead": ends[End.DEAD],
        "delivery_p95": of_histogram(95, deliveries(copies)),
    }


def _ratio(now: float | None, before: float | None) -> float | None:
    return round(now / before, 4) if now is not None and before else None
