"""Events of typical deliveries, for tests of lives and reports."""

from typing import Any

from holdfast.journal.schema import Event
from holdfast.journal.wording import wording_of
from tests.unit.pipeline.events import event, published


def delivery(kind: str, after_s: float, msg: int, receiver: str, **more: Any) -> Event:
    return event(kind, after_s, msg, receiver=receiver, **more)


def handed(after_s: float, msg: int, receiver: str, attempt: int = 1) -> Event:
    kind = "handed" if attempt == 1 else "redelivered"
    return delivery(kind, after_s, msg, receiver, attempt=attempt)


def acked(after_s: float, msg: int, receiver: str) -> Event:
    return delivery("acked", after_s, msg, receiver)


def died(
    after_s: float, msg: int, receiver: str, code: str = "user.update.error", text: str = ""
) -> list[Event]:
    why = {"attempt": 1, "code": code, "wording": wording_of(text)}
    return [
        delivery("refused", after_s, msg, receiver, **why),
        delivery("dead", after_s, msg, receiver, **why, letter=msg, fingerprint="f"),
    ]


def the_story() -> list[Event]:
    """Ten messages for two receivers; bob refuses every fifth, and one is replayed to him."""
    told: list[Event] = []
    for n in range(10):
        told.append(published(n, 2, "/orders" if n % 2 else "/chat"))
        told += [handed(n + 0.01, n, "ann/1"), handed(n + 0.01, n, "bob/1")]
        told.append(acked(n + 0.05, n, "ann/1"))
        if n % 5 == 0:
            told += died(n + 0.1, n, "bob/1")
        elif n != 9:
            told.append(acked(n + 0.06, n, "bob/1"))
    told.append(delivery("replayed", 20, 5, "bob/1", letter=5, generation=1, channel="/orders"))
    told += [handed(20.1, 5, "bob/1"), acked(20.2, 5, "bob/1")]
    return told


def books(after_s: float, **counts: int) -> list[Event]:
    return [event("books", after_s, what=what, number=n) for what, n in counts.items()]


def start(after_s: float) -> Event:
    return event("node", after_s, what="start", number=0)


def refused_publishes(after_s: float, reason: str, channel: str | None, number: int) -> Event:
    return event("publishes_refused", after_s, what=reason, channel=channel, number=number)
