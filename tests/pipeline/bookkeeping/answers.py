"""What each report has to say, by the books: its rows by their keys."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from math import ceil
from typing import Any

from holdfast.delivery.letters.dead import fingerprint
from holdfast.journal.schema import NS_PER_US
from tests.pipeline.bookkeeping.bounds import (
    ANYTHING,
    Between,
    When,
    first,
    last,
    moment,
    number,
    percentile,
    took,
)
from tests.pipeline.bookkeeping.ledger import (
    Copy,
    End,
    Failure,
    Ledger,
    Message,
    Span,
    Stay,
    now_us,
)

Row = dict[str, Any]
Key = tuple[Any, ...]
Rows = dict[Key, Row]

MINUTE_US, HOUR_US, DAY_US = 60_000_000, 3_600_000_000, 86_400_000_000
NODE = "holdfast"
_DONE = (End.ACKED, End.WRITTEN)
_PARTS = (50, 95, 99)
_OF_MINUTES = ("handed", "ended", "dead")
# Set in rows that need not be there: nobody but the server knows on which side of an hour it was.
MAYBE = "maybe"


def channel_of(message: Message) -> str:
    return "/ret/*" if message.channel.startswith("/ret/") else message.channel


def id_us(message: Message) -> int:
    return message.id // NS_PER_US


def _by(copies: Iterable[Copy]) -> dict[str, list[Copy]]:
    found: dict[str, list[Copy]] = defaultdict(list)
    for copy in copies:
        found[channel_of(copy.message)].append(copy)
    return found


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _minute(us: int) -> int:
    return us - us % MINUTE_US


def funnel(books: Ledger) -> Rows:
    rows: Rows = {}
    by, published = _by(books.copies), Counter(map(channel_of, books.messages))
    for channel in published:
        copies = by.get(channel, [])
        ends = Counter(copy.end for copy in copies)
        acked = ends[End.ACKED] + ends[End.WRITTEN]
        replayed = sum(copy.generation > 0 for copy in copies)
        rows[channel,] = {
            "published": published[channel],
            "copies": len(copies) - replayed,
            "replayed": replayed,
            "moves": sum(copy.moves for copy in copies),
            "handed": sum(copy.attempts > 0 for copy in copies),
            "acked": acked,
            "dead": ends[End.DEAD],
            "expired": ends[End.EXPIRED],
            "discarded": ends[End.DISCARDED],
            "lost": ends[End.LOST],
            "open": ends[None],
            "share": _share(acked, len(copies)),
        }
    return rows


def latency(books: Ledger) -> Rows:
    rows: Rows = {}
    for channel, copies in _by(books.copies).items():
        times: dict[str, list[Span]] = {"delivery": [], "answer": [], "critical": []}
        for copy in copies:
            if copy.generation:
                continue
            sent = _sent(copy.message)
            for stay in copy.stays:
                is_over = stay is not copy.stay or copy.end is not None
                if stay.hand_overs and not stay.former and is_over:
                    times["delivery"].append(took(sent, stay.hand_overs[0]))
            if copy.end is End.ACKED and copy.stay.hand_overs:
                times["answer"].append(took(copy.stay.hand_overs[0], _ended(copy)))
                times["critical"].append(took(sent, _ended(copy)))
        if not times["delivery"] and not times["answer"]:
            continue
        row: Row = {"n": len(times["delivery"]), "acked": len(times["answer"])}
        for what, spans in times.items():
            for part in _PARTS:
                row[f"{what}_p{part}"] = percentile(part / 100, spans)
            row[f"{what}_max"] = percentile(1, spans)
        rows[channel,] = row
    return rows


def dead(books: Ledger) -> Rows:
    groups: dict[Key, list[Copy]] = defaultdict(list)
    for copy in books.dead():
        code = _death(copy).code
        key = (code, channel_of(copy.message), fingerprint(copy.message.channel, code))
        groups[key].append(copy)
    return {
        key: {
            "dead": len(copies),
            "receivers": len({copy.receiver for copy in copies}),
            "first": first(map(_ended, copies)),
            "last": last(map(_ended, copies)),
        }
        for key, copies in groups.items()
    }


def _death(copy: Copy) -> Failure:
    assert copy.death is not None
    return copy.death


def _ended(copy: Copy) -> Span:
    assert copy.ended is not None
    return copy.ended


def poison(books: Ledger) -> Rows:
    rows: Rows = {}
    by: dict[int, list[Copy]] = defaultdict(list)
    for copy in books.copies:
        # Nobody saw what was lost on its way.
        is_seen = copy.end is not End.LOST or copy.attempts > 0
        if copy.end is not None and is_seen:
            by[copy.message.id].append(copy)
    for id, copies in by.items():
        died = [copy for copy in copies if copy.end is End.DEAD]
        names, of_dead = {c.receiver for c in copies}, {c.receiver for c in died}
        if len(of_dead) >= 3 and len(of_dead) >= 0.8 * len(names):
            rows[id, NODE] = {
                "channel": channel_of(copies[0].message),
                "receivers": len(names),
                "dead": len(of_dead),
                "code": max(_death(copy).code for copy in died),
                "share": _share(len(of_dead), len(names)),
            }
    return rows


def redelivery(books: Ledger) -> Rows:
    stays: dict[Key, list[tuple[Copy, Stay]]] = defaultdict(list)
    for copy in books.copies:
        for stay in copy.stays:
            if stay.hand_overs:
                stays[channel_of(copy.message), stay.receiver].append((copy, stay))
    rows: Rows = {}
    for key, known in stays.items():
        refusals = sum(len(stay.refusals) for _, stay in known)
        again = sum(_repeats(stay) for _, stay in known)
        copies = len({id(copy) for copy, _ in known})
        repeated = len({id(copy) for copy, stay in known if _repeats(stay)})
        if refusals or again:
            rows[key] = {
                "copies": copies,
                "repeated": repeated,
                "redeliveries": again,
                "refusals": refusals,
                "attempts": max(stay.former + len(stay.hand_overs) for _, stay in known),
                "share": _share(repeated, copies),
            }
    return rows


def _repeats(stay: Stay) -> int:
    return len(stay.hand_overs) - (0 if stay.former else 1)


def flapping(books: Ledger) -> Rows:
    by = defaultdict(list)
    for contact in books.contacts:
        by[contact.receiver].append(contact)
    rows: Rows = {}
    for receiver, losses in by.items():
        sure = sum(each.is_sure for each in losses)
        is_sure = sure == len(losses)
        if len(losses) >= 3:
            rows[receiver,] = {
                "first": first(each.span for each in losses) if is_sure else ANYTHING,
                "last": last(each.span for each in losses) if is_sure else ANYTHING,
                "losses": Between(sure, len(losses)),
                "how": " ".join(sorted({each.what for each in losses})) if is_sure else ANYTHING,
                MAYBE: sure < 3,
            }
    return rows


def holdback_advice(books: Ledger) -> Rows:
    rows: Rows = {}
    for channel, copies in _by(books.copies).items():
        tried = [
            copy
            for copy in copies
            if copy.end is not None
            and copy.stay.refusals
            and (copy.attempts > 1 or copy.end in _DONE)
        ]
        through = [copy for copy in tried if copy.end in _DONE]
        times = [took(copy.stay.hand_overs[0], _ended(copy)) for copy in through]
        extra = [max(len(copy.stay.hand_overs) - 1, 1) for copy in through]
        each = [
            Span(time.since_us // n, time.until_us // n)
            for time, n in zip(times, extra, strict=True)
        ]
        attempts = sorted(copy.attempts for copy in through)
        if tried:
            rows[channel,] = {
                "retried": len(tried),
                "succeeded": len(through),
                "success_p50": percentile(0.5, times),
                "backoff": percentile(0.9, each),
                "max_attempts": _most_of(0.99, attempts),
                "share": _share(len(through), len(tried)),
            }
    return rows


def _most_of(part: float, numbers: list[int]) -> int | None:
    """The percentile between two neighbours, rounded up."""
    if not numbers:
        return None
    place = (len(numbers) - 1) * part
    low = int(place)
    high = min(low + 1, len(numbers) - 1)
    return ceil(round(numbers[low] + (numbers[high] - numbers[low]) * (place - low), 6))


def _events(books: Ledger) -> Iterator[tuple[str, Span]]:
    for copy in books.copies:
        for stay in copy.stays:
            yield from (("handed", span) for span in stay.hand_overs)
        if copy.end not in (None, End.LOST):
            yield "ended", _ended(copy)
        if copy.end is End.DEAD:
            yield "dead", _ended(copy)


def throughput(books: Ledger) -> Rows:
    spans: dict[str, list[Span]] = defaultdict(list)
    for what, span in _events(books):
        spans[what].append(span)
    sent: dict[int, list[Message]] = defaultdict(list)
    for message in books.messages:
        sent[_minute(id_us(message))].append(message)
    copies = Counter(_minute(id_us(c.message)) for c in books.copies if not c.generation)
    minutes = {_minute(us) for known in spans.values() for span in known for us in span}
    rows: Rows = {}
    for minute in {*sent, *minutes}:
        counts = {what: number(spans[what], minute, minute + MINUTE_US) for what in _OF_MINUTES}
        rows[moment(minute), NODE] = {
            "published": len(sent[minute]),
            "copies": copies[minute],
            "bytes": _sizes(sent[minute]),
            **counts,
            MAYBE: not sent[minute] and not any(count.least for count in counts.values()),
        }
    return rows


def _sizes(messages: list[Message]) -> Between:
    return Between(sum(m.sizes[0] for m in messages), sum(m.sizes[1] for m in messages))


def publishers(books: Ledger) -> Rows:
    by: dict[str | None, list[Message]] = defaultdict(list)
    for message in books.messages:
        by[message.sender].append(message)
    copies = Counter(copy.message.sender for copy in books.copies if not copy.generation)
    rows: Rows = {}
    for sender, messages in by.items():
        minutes = Counter(_minute(id_us(message)) for message in messages)
        most = max(minutes.values())
        busiest = min(minute for minute, n in minutes.items() if n == most)
        rows[sender,] = {
            "published": len(messages),
            "copies": copies[sender],
            "bytes": _sizes(messages),
            "most_per_minute": most,
            "busiest": moment(busiest),
        }
    return rows


def slow_receivers(books: Ledger) -> Rows:
    by: dict[str, list[Copy]] = defaultdict(list)
    for copy in books.copies:
        if copy.end is End.ACKED and copy.stay.hand_overs:
            by[copy.receiver].append(copy)
    rows: Rows = {}
    for receiver, copies in by.items():
        times = [took(copy.stay.hand_overs[0], _ended(copy)) for copy in copies]
        if len(copies) >= 10:
            rows[receiver,] = {
                "acked": len(copies),
                "channels": len({channel_of(copy.message) for copy in copies}),
                "ack_p50": percentile(0.5, times),
                "ack_p95": percentile(0.95, times),
                "ack_max": percentile(1, times),
            }
    return rows


def backlog(books: Ledger) -> Rows:
    """By hour; what waits at its end is certain if nothing happens around it."""
    came = [copy.replayed or _sent(copy.message) for copy in books.copies]
    went = [_ended(copy) for copy in books.copies if copy.end is not None]
    hours = {us - us % HOUR_US for span in (*came, *went) for us in span}
    rows: Rows = {}
    for hour in hours:
        end = hour + HOUR_US
        begun, gone = number(came, 0, end), number(went, 0, end)
        most = Between(begun.least - gone.most, begun.most)
        rows[moment(hour),] = {
            "came": number(came, hour, end),
            "went": number(went, hour, end),
            "most": most,
            "waiting": Between(begun.least - gone.most, begun.most - gone.least),
            MAYBE: not number((*came, *went), hour, end).least,
        }
    return rows


def trend(books: Ledger) -> Rows:
    """By channel, if all happened within the last hour, as in a test."""
    rows: Rows = {}
    for channel, copies in _by(books.copies).items():
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


def lag(books: Ledger) -> Rows:
    by: dict[str, list[Copy]] = defaultdict(list)
    for copy in books.copies:
        if copy.end in _DONE and not copy.generation:
            by[copy.receiver].append(copy)
    rows: Rows = {}
    for receiver, copies in by.items():
        for hour in {us - us % HOUR_US for copy in copies for us in _ended(copy)}:
            ended = number(map(_ended, copies), hour, hour + HOUR_US)
            is_sure = ended.least == len(copies)
            times = [took(_sent(copy.message), _ended(copy)) for copy in copies]
            rows[moment(hour), receiver] = {
                "acked": ended,
                **{
                    f"lag_{name}": percentile(part, times) if is_sure else ANYTHING
                    for name, part in (("p50", 0.5), ("p95", 0.95), ("max", 1))
                },
                MAYBE: not ended.least,
            }
    return rows


def refused_publishes(books: Ledger) -> Rows:
    """A killed server forgets the refusals that it has not written yet."""
    rows: Rows = {}
    refused: dict[Key, list[Span]] = defaultdict(list)
    for refusal in books.refused:
        refused[refusal.reason, refusal.channel].append(refusal.span)
    for key, spans in refused.items():
        sure = sum(span.since_us > books.last_kill_us for span in spans)
        late = Span(min(span.since_us for span in spans), now_us())
        rows[key] = {
            "refused": Between(sure, len(spans)),
            "first": When(late),
            "last": When(late),
            MAYBE: not sure,
        }
    return rows


def _sent(message: Message) -> Span:
    return Span(id_us(message), id_us(message))


def days(books: Ledger) -> Rows:
    rows: Rows = {}
    by: dict[int, list[Message]] = defaultdict(list)
    for message in books.messages:
        by[id_us(message) // DAY_US].append(message)
    for day, messages in by.items():
        copies = [c for c in books.copies if id_us(c.message) // DAY_US == day]
        ends = Counter(copy.end for copy in copies)
        rows[moment(day * DAY_US),] = {
            "published": len(messages),
            "copies": sum(not copy.generation for copy in copies),
            "acked": ends[End.ACKED] + ends[End.WRITTEN],
            "dead": ends[End.DEAD],
        }
    return rows


def unusual(books: Ledger) -> Rows:
    """Nothing is unusual in less than five days."""
    return {}


def causes(books: Ledger) -> Rows:
    failed: dict[Key, list[tuple[str, str, Message, Span]]] = defaultdict(list)
    for copy in books.copies:
        for stay in copy.stays:
            for code, wording, span in stay.refusals:
                failed[code, wording].append(("refusals", stay.receiver, copy.message, span))
        if copy.end is End.DEAD:
            code, wording, span = _death(copy)
            failed[code, wording].append(("dead", copy.receiver, copy.message, span))
    rows: Rows = {}
    for key, known in failed.items():
        kinds = Counter(kind for kind, *_ in known)
        channels = {channel_of(message) for _, _, message, _ in known}
        rows[key] = {
            "refusals": kinds["refusals"],
            "dead": kinds["dead"],
            "receivers": len({receiver for _, receiver, _, _ in known}),
            "channels": len(channels),
            "example": min(map(_starred, channels)),
            "first": first(span for *_, span in known),
            "last": last(span for *_, span in known),
        }
    return rows


def _starred(channel: str) -> str:
    parts = channel.split("/")
    return "/".join("*" if any(map(str.isdigit, part)) else part for part in parts)


_OF_REQUESTS = ("asked", "answered", "no_responders", "timeout", "refused", "abandoned", "unsent")
_REQUEST_COUNTS = (*_OF_REQUESTS, "late", "duplicate", "denied")


def requests(books: Ledger) -> Rows:
    by = defaultdict(list)
    for step in books.steps:
        by[step.channel].append(step)
    rows: Rows = {}
    for channel, steps in by.items():
        counts = Counter(step.what for step in steps)
        times = [step.took for step in steps if step.what == "answered" and step.took]
        row: Row = {name: counts[name] for name in _REQUEST_COUNTS}
        row |= {f"answer_p{part}": percentile(part / 100, times) for part in _PARTS}
        rows[channel,] = row | {"share": _share(counts["answered"], counts["asked"])}
    return rows


# By report: the columns of the key, and the rows.
ANSWERS: dict[str, tuple[tuple[str, ...], Callable[[Ledger], Rows]]] = {
    "latency": (("channel",), latency),
    "dead": (("code", "channel", "fingerprint"), dead),
    "poison": (("msg", "origin"), poison),
    "redelivery": (("channel", "receiver"), redelivery),
    "funnel": (("channel",), funnel),
    "flapping": (("receiver",), flapping),
    "holdback-advice": (("channel",), holdback_advice),
    "throughput": (("minute", "node"), throughput),
    "publishers": (("sender",), publishers),
    "slow-receivers": (("receiver",), slow_receivers),
    "backlog": (("hour",), backlog),
    "trend": (("channel",), trend),
    "lag": (("hour", "receiver"), lag),
    "refused-publishes": (("reason", "channel"), refused_publishes),
    "days": (("day",), days),
    "unusual": (("hour", "channel", "measure"), unusual),
    "causes": (("code", "wording"), causes),
    "requests": (("channel",), requests),
}
