"""The stored form of a durable session: what of it survives a restart."""

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Protocol, Self

VERSION = 1


class RecordUnreadable(Exception):
    """A stored record that this version cannot read; the text says why."""


@dataclass(frozen=True, slots=True)
class HoldRecord:
    """Whether the queue flows (`is_active`), or why it is held back; times are ms since 1970."""

    is_active: bool = True
    reason: str = ""
    until_ms: int | None = None
    who: str = ""
    since_ms: int = 0


class Recorded(Protocol):
    """A session whose state at the end of the turn is to be stored, however often it changes."""

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
    # Its name on the wire: client/joe/1.
    name: str
    # The effective terms that it negotiated in ext.delivery.
    delivery: dict[str, Any]
    acks: bool
    # Whether its id is valid only with the browser's cookie.
    needs_cookie: bool = True
    # Whether a page of a known origin created it.
    is_of_page: bool = False
    # The proof of its right to system events, valid as long as its token; empty if it has none.
    warrant: str = ""
    # The login of its client; None if nobody had to log in.
    login: dict[str, Any] | None = None
    subscriptions: list[str] = field(default_factory=list)
    # The QoS of subscriptions that have one.
    subscription_qos: dict[str, Any] = field(default_factory=dict)
    # Those that ended without its client, until that knows.
    lost_subscriptions: list[str] = field(default_factory=list)
    batch: int = 0
    seq: int = 0
    hold: HoldRecord = field(default_factory=HoldRecord)
    # Refused for good under `onUserException: dead`: nothing is delivered before a new handshake.
    is_given_up: bool = False
    timeout_s: float = 0.0
    # Whether the timeout was granted specially; it may exceed the server's limit.
    is_granted: bool = False
    # Whether it was made for a message that is addressed to it, and no client has come yet.
    is_unclaimed: bool = False
    # Whether its client has cursors, and if so whether in the data, too.
    replay_ids: bool | None = None
    # The secret part of its channel for replies; empty if it has none.
    ret: str = ""
    # Its outstanding requests, in records of releases that kept them here.
    requests: list[dict[str, Any]] = field(default_factory=list)
    created_ms: int = 0
    seen_ms: int = 0

    def record(self) -> "SessionRecord":
        return self

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON has it."""
        record = {each.name: getattr(self, each.name) for each in fields(self)}
        record["hold"] = asdict(self.hold)
        return {"v": VERSION, **record}

    @classmethod
    def of_json(cls, given: dict[str, Any]) -> Self:
        """Read a record; ignore fields of later versions, use defaults for missing ones."""
        if given.get("v") != VERSION:
            raise RecordUnreadable(f"session record of version {given.get('v')}")
        known = {each.name: given[each.name] for each in fields(cls) if each.name in given}
        try:
            known["hold"] = HoldRecord(**known["hold"])
            return cls(**known)
        except (KeyError, TypeError) as error:
            raise RecordUnreadable(f"session record: {error}") from error
