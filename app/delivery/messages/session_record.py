"""The stored form of a durable session: what survives a restart."""

from dataclasses import dataclass, field, fields
from typing import Any, Final, Protocol, Self

VERSION = 1


class RecordUnreadable(Exception):
    """This version cannot read a stored record. The text says why."""


@dataclass(frozen=True, slots=True)
class HoldRecord:
    """Whether the queue flows (`is_active`), or why it is held back. Times are ms since 1970."""

    is_active: bool = True
    reason: str = ""
    until_ms: int | None = None
    who: str = ""
    since_ms: int = 0


class Recorded(Protocol):
    """A session whose state is stored once when the turn ends, however often it changes."""

    @property
    def key(self) -> str: ...

    def record(self) -> "SessionRecord": ...


@dataclass(slots=True)
class SessionRecord:
    """One durable session. Times are ms since 1970."""

    key: str
    client_id: str
    browser: str
    subject: str
    number: int
    # The name on the wire: client/joe/1.
    name: str
    # The terms agreed in ext.delivery.
    delivery: dict[str, Any]
    acks: bool
    # Whether requests must show the browser's cookie in addition to the client id.
    needs_cookie: bool = True
    # The client that had it before, if another one did: its id, then its browsers.
    taken_from: list[str] = field(default_factory=list)
    # Whether a page of a known origin created it.
    is_of_page: bool = False
    # Proof of its right to system events, valid as long as its token; empty if it has no such
    # right.
    warrant: str = ""
    # The client's login; None if the server requires none.
    login: dict[str, Any] | None = None
    subscriptions: list[str] = field(default_factory=list)
    # The QoS of subscriptions that have options.
    subscription_qos: dict[str, Any] = field(default_factory=dict)
    # Subscriptions because of which it answers no requests.
    silent_on: list[str] = field(default_factory=list)
    # Subscriptions that ended without the client's doing, until the client is informed.
    lost_subscriptions: list[str] = field(default_factory=list)
    batch: int = 0
    seq: int = 0
    hold: HoldRecord = field(default_factory=HoldRecord)
    # Whether the client refused everything under `onUserException: dead`. Then nothing is delivered
    # before the next handshake.
    is_given_up: bool = False
    timeout_s: float = 0.0
    # Whether the timeout was granted specially, so that it may exceed the server's limit.
    is_granted: bool = False
    # Whether it was created for a message addressed to it, and no client has come yet.
    is_unclaimed: bool = False
    # Whether its client has cursors and, if so, whether they also stand in the data.
    replay_ids: bool | None = None
    # The secret part of its reply channel; empty if it has none.
    ret: str = ""
    # Its outstanding requests, in layouts of the store that have them here.
    requests: list[dict[str, Any]] = field(default_factory=list)
    created_ms: int = 0
    seen_ms: int = 0

    def record(self) -> "SessionRecord":
        return self

    def to_json(self) -> dict[str, Any]:
        """Return the record as a JSON object."""
        record: dict[str, Any] = {"v": VERSION}
        for name in _NAMES:
            record[name] = getattr(self, name)
        hold = self.hold
        record["hold"] = {name: getattr(hold, name) for name in _NAMES_OF_HOLD}
        return record

    @classmethod
    def of_json(cls, given: dict[str, Any]) -> Self:
        """Read a record. Unknown fields are ignored; missing ones get defaults."""
        if given.get("v") != VERSION:
            raise RecordUnreadable(f"session record of version {given.get('v')}")
        known = {each.name: given[each.name] for each in fields(cls) if each.name in given}
        try:
            known["hold"] = HoldRecord(**known["hold"])
            return cls(**known)
        except (KeyError, TypeError) as error:
            raise RecordUnreadable(f"session record: {error}") from error


# Thousands of sessions may change in one turn, and looking these up takes longer than the rest.
_NAMES: Final = tuple([each.name for each in fields(SessionRecord)])
_NAMES_OF_HOLD: Final = tuple([each.name for each in fields(HoldRecord)])
