"""Events of a quiet day, for tests."""

from typing import Any

from holdfast.journal.schema import Event

NODE = "n1"
# A Thursday, at ten.
START_US = 1_763_632_800_000_000
SECOND = 1_000_000


def event(kind: str, after_s: float, msg: int | None = None, **more: Any) -> Event:
    """An event so many seconds after the start, about the message published at such a second."""
    ns = None if msg is None else (START_US + msg * SECOND) * 1000
    origin = None if msg is None else NODE
    given = {"node": NODE, "ts": START_US + round(after_s * SECOND), "kind": kind}
    return Event(**{**given, "msg": ns, "origin": origin, **more})


def published(msg: int, copies: int, channel: str = "/a", **more: Any) -> Event:
    given = {"copies": copies, "kept": copies, "size": 100, "priority": 5, "sender": "pub/1"}
    return event("published", msg, msg, channel=channel, **{**given, **more})
