"""Requests without a session that wait for messages of histories."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Protocol

from holdfast.bayeux.wire.caller import Caller
from holdfast.bayeux.wire.identity import Grants
from holdfast.delivery.basics.channels import Channel


class ReaderGrants(Grants, Protocol):
    """The rights of a request without a session."""

    subject: str
    # When the login or the ticket ends, in seconds since 1970, and which of them it is.
    ends_s: float
    is_ticket: bool

    @property
    def rules(self) -> object:
        """What decides about the rights now. When it changes, it is another object."""
        ...


class Live(StrEnum):
    """How a reader waits for messages."""

    NO = "no"
    LONG_POLL = "long-poll"
    SSE = "sse"
    EVENTS = "events"


class WaitingReader:
    """A request that reads histories.

    Args:
        grants: Its rights; None if no login is required.
        channels: What it reads; it may be patterns.
        since_ms: When it came, in ms since 1970.
    """

    __slots__ = ("_rules", "bytes", "caller", "channels", "end", "grants", "live", "since_ms")

    def __init__(
        self,
        caller: Caller,
        grants: ReaderGrants | None,
        channels: Sequence[Channel],
        *,
        live: Live,
        since_ms: int,
    ) -> None:
        self.caller, self.grants, self.channels, self.live = caller, grants, channels, live
        self.since_ms = since_ms
        # How many bytes were sent to it.
        self.bytes = 0
        # Ends its wait: what it waits for then finds out what it may still read.
        self.end: Callable[[], None] | None = None
        self._rules = None if grants is None else grants.rules

    @property
    def subject(self) -> str:
        """The subject of its login, or nothing."""
        return "" if self.grants is None else self.grants.subject

    def is_doubtful(self, now_s: float) -> bool:
        """Return whether its rights may have changed since the last call."""
        grants, rules = self.grants, self._rules
        if grants is None:
            return False
        self._rules = grants.rules
        return grants.ends_s <= now_s or self._rules is not rules
