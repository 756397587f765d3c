"""Reports of what became of messages and receivers."""

from collections import Counter, defaultdict

from holdfast.delivery.letters.dead import fingerprint
from tests.pipeline.bookkeeping.figures import moment
from tests.pipeline.bookkeeping.ledger import Copy, End, Failure, Ledger, Message, Stay
from tests.pipeline.bookkeeping.rows import Key, Rows, by_channel, channel_of, ended_us, share


def funnel(books: Ledger) -> Rows:
    rows: Rows = {}
    by, published = by_channel(books.copies), Counter(map(channel_of, books.messages))
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
            "share": share(acked, len(copies)),
        }
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
            "first": moment(min(map(ended_us, copies))),
            "last": moment(max(map(ended_us, copies))),
        }
        for key, copies in groups.items()
    }


def _death(copy: Copy) -> Failure:
    assert copy.death is not None
    return copy.death


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
            rows[id, books.origin] = {
                "channel": channel_of(copies[0].message),
                "receivers": len(names),
                "dead": len(of_dead),
                "code": max(_death(copy).code for copy in died),
                "share": share(len(of_dead), len(names)),
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
                "share": share(repeated, copies),
            }
    return rows


def _repeats(stay: Stay) -> int:
    return len(stay.hand_overs) - (0 if stay.former else 1)


def flapping(books: Ledger) -> Rows:
    """By receiver, if all happened within ten minutes, as in a test."""
    by = defaultdict(list)
    for contact in books.contacts:
        if not contact.is_of_server:
            by[contact.receiver].append(contact)
    return {
        (receiver,): {
            "first": moment(min(each.span.us for each in losses)),
            "last": moment(max(each.span.us for each in losses)),
            "losses": len(losses),
            "how": " ".join(sorted({each.what for each in losses})),
        }
        for receiver, losses in by.items()
        if len(losses) >= 3
    }


def unusual(books: Ledger) -> Rows:
    """Nothing is unusual in less than five days."""
    return {}


def causes(books: Ledger) -> Rows:
    failed: dict[Key, list[tuple[str, str, Message, int]]] = defaultdict(list)
    for copy in books.copies:
        for stay in copy.stays:
            for code, wording, span in stay.refusals:
                failed[code, wording].append(("refusals", stay.receiver, copy.message, span.us))
        if copy.end is End.DEAD:
            code, wording, span = _death(copy)
            failed[code, wording].append(("dead", copy.receiver, copy.message, span.us))
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
            "first": moment(min(us for *_, us in known)),
            "last": moment(max(us for *_, us in known)),
        }
    return rows


def _starred(channel: str) -> str:
    parts = channel.split("/")
    return "/".join("*" if any(map(str.isdigit, part)) else part for part in parts)
