"""Events for tests of reports."""

from collections.abc import Iterator

from holdfast.journal.schema import Event
from tests.unit.pipeline.events import event, published
from tests.unit.pipeline.stories import acked, died, handed

HOUR, DAY = 3600, 86_400
USUAL = 20
# The unusual hours since the start, with their numbers of messages.
UNUSUAL = {5 * 24: 3 * USUAL, 6 * 24 + 1: 0}
# One report of each kind; those of a kind find their rows in the same way.
KINDS = ("funnel", "throughput", "latency", "requests")


def a_week() -> list[Event]:
    """Eight days with messages in two hours of each; the last day ends ten minutes earlier."""
    told: list[Event] = []
    for hour in (24 * day + hour for day in range(8) for hour in (0, 1)):
        for n in range(UNUSUAL.get(hour, USUAL)):
            at = hour * HOUR + n
            told += [published(at, 1), handed(at + 0.01, at, "ann/1"), acked(at + 1, at, "ann/1")]
    return told


def more() -> list[Event]:
    """One message dies for three of four receivers; joe needs three attempts and loses contact."""
    told = [published(40, 3, "/poison"), published(50, 1, "/slow")]
    # Not all of its copies are in the store.
    told.append(published(40, 1, "/poison", kept=0, size=0))
    for who in ("a/1", "b/1", "c/1"):
        told += [handed(40.1, 40, who), *died(40.2, 40, who, "user.update.internalError")]
    told += [handed(50 + 2 * n, 50, "joe/1", n + 1) for n in range(3)]
    lost = {"receiver": "joe/1", "code": "communication.noConnection"}
    told += [event("refused", 51 + 2 * n, 50, attempt=n + 1, **lost) for n in range(2)]
    told.append(acked(56, 50, "joe/1"))
    told += [event("dispatcher", 60 + n, receiver="joe/1", what="polling") for n in range(3)]
    told.append(event("session", 64, receiver="joe/1", what="resumed", number=0))
    # Of this copy the journal has only the end.
    told.append(acked(1, -5, "joe/1"))
    return told


def moved(after_s: float, msg: int, source: str, target: str, attempt: int = 0) -> list[Event]:
    """A copy leaves one queue for another, with the attempts that it had."""
    return [
        event("moved", after_s, msg, receiver=source),
        event("entered", after_s, msg, receiver=target, attempt=attempt or None),
    ]


def merged(msg: int) -> list[Event]:
    """A message for two sessions of a subject returns to it from both, and from one to both."""
    less = {"kept": -1, "size": 0}
    return [
        published(msg, 2, "/mail"),
        *moved(msg + 1, msg, "joe/1", "joe/0"),
        published(msg, -1, "/mail", **less),
        event("moved", msg + 2, msg, receiver="joe/2"),
        published(msg, 1, "/mail", size=0),
        *moved(msg + 3, msg, "joe/0", "joe/3"),
        event("entered", msg + 3, msg, receiver="joe/4"),
        handed(msg + 4, msg, "joe/3"),
        acked(msg + 5, msg, "joe/3"),
    ]


def work(count: int, *, dead: int) -> list[Event]:
    """A work queue; two workers refuse its first items, `dead` of them.

    Of the others, one refuses every third, which the other one acks.
    """
    queue, told = "work:/jobs/0", list[Event]()
    for msg in range(count):
        at = msg + 0.1
        told.append(published(msg, 1, "/jobs"))
        told += [*moved(at, msg, queue, "ann/1"), handed(at, msg, "ann/1")]
        if msg >= dead and msg % 3:
            told.append(acked(at + 1, msg, "ann/1"))
            continue
        told += [refused(at + 1, msg, "ann/1"), *moved(at + 1, msg, "ann/1", queue, 1)]
        told += [*moved(at + 2, msg, queue, "bob/1", 1), handed(at + 2, msg, "bob/1", 2)]
        if msg >= dead:
            told.append(acked(at + 3, msg, "bob/1"))
            continue
        told += [refused(at + 3, msg, "bob/1", 2), *moved(at + 3, msg, "bob/1", queue, 2)]
        told += died(at + 4, msg, queue)[1:]
    return told


def refused(after_s: float, msg: int, receiver: str, attempt: int = 1) -> Event:
    why = {"attempt": attempt, "code": "user.update.error"}
    return event("refused", after_s, msg, receiver=receiver, **why)


def refusals() -> Iterator[Event]:
    """Unknown orders on channels of two countries, and other refusals."""
    for n in range(41):
        yield published(n, 1, f"/orders/{'us' if n % 2 else 'eu'}/{n}")
        yield handed(n + 0.1, n, f"joe/{n % 3}")
    for n in range(39):
        yield from died(n + 1, n, f"joe/{n % 3}", text=f"order {7 * n} of 'client {n}' is unknown")
    for n in (39, 40):
        yield from died(n + 1, n, f"joe/{n % 3}", text=f"no room for order {n}")
    yield from (published(50, 2, "/chat"), handed(50, 50, "ann/1"), handed(50, 50, "bob/1"))
    yield event("refused", 51, 50, receiver="ann/1", attempt=1, code="user.update.holdback")
    yield acked(52, 50, "ann/1")
    yield from died(52, 50, "bob/1", "user.update.internalError", 'order 3 of "eve" is unknown')


def request(after_s: float, what: str, number: int | None, channel: str = "/ask") -> Event:
    return event("request", after_s, receiver="ann/1", channel=channel, what=what, number=number)


def requests() -> Iterator[Event]:
    for n in range(1, 101):
        yield request(n, "asked", 1000)
        yield request(n + 0.5, "answered", 1000 * n)
    for n, how in enumerate(("no_responders", "timeout", "timeout", "refused", "abandoned")):
        yield request(n, "asked", 1000)
        yield request(n, how, 5)
    yield request(200, "asked", 1000)
    yield request(200, "asked", 1000, "/other")
    for what in ("accepted", "late", "late", "duplicate"):
        yield event("reply", 300, receiver="bob/1", channel="/ask", what=what, number=1)
    yield event("reply", 300, receiver="eve/1", what="denied")
