"""What is remembered of a durable session when its process ends."""

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Protocol, Self

VERSION = 1


class RecordUnreadable(Exception):
    """A stored record that this version cannot read; the text says why."""


@dataclass(frozen=True, slots=True)
class HoldRecord:
    """Whether the session is held back, and why; times are ms since 1970."""

    is_active: bool = True
    reason: str = ""
    until_ms: int | None = None
    who: str = ""
    since_ms: int = 0


class Recorded(Protocol):
    """A session that is to be remembered as it is when the turn ends, however often it changes."""

    @property
    def key(self) -> str: ...

    def record(self) -> "SessionRecord": ...


@dataclass(slots=True)
class SessionRecord:
    """One durable session; times are ms since 1970."""

    key: str
    client_id: str
    browser: str
    subject: str
    number: int
    # What the wire calls it: client/joe/1.
    name: str
    # What it negotiated in ext.delivery, effective values.
    delivery: dict[str, Any]
    acks: bool
    # Whether its id is nothing without the browser's cookie.
    needs_cookie: bool = True
    # Whether a page made it whose origin was known.
    is_of_page: bool = False
    # What shows that it may see what the system tells, as long as its token does; none: it may not.
    warrant: str = ""
    subscriptions: list[str] = field(default_factory=list)
    # Those among them whose messages are done when they are written.
    oneway: list[str] = field(default_factory=list)
    batch: int = 0
    seq: int = 0
    hold: HoldRecord = field(default_factory=HoldRecord)
    # Refused for good under `onUserException: dead`: nothing is delivered until it handshakes.
    is_given_up: bool = False
    timeout_s: float = 0.0
    # Somebody granted it that timeout, which may be longer than the server's longest.
    is_granted: bool = False
    created_ms: int = 0
    seen_ms: int = 0

    def record(self) -> "SessionRecord":
        return self

    def to_json(self) -> dict[str, Any]:
        """The record as JSON has it."""
        record = {each.name: getattr(self, each.name) for each in fields(self)}
        record["hold"] = asdict(self.hold)
        return {"v": VERSION, **record}

    @classmethod
    def of_json(cls, given: dict[str, Any]) -> Self:
        """The record again. Fields of a later version's are ignored, missing ones have defaults."""
        if given.get("v") != VERSION:
            raise RecordUnreadable(f"session record of version {given.get('v')}")
        known = {each.name: given[each.name] for each in fields(cls) if each.name in given}
        try:
            known["hold"] = HoldRecord(**known["hold"])
            return cls(**known)
        except (KeyError, TypeError) as error:
            raise RecordUnreadable(f"session record: {error}") from error
