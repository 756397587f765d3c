"""The requests that read histories: how many may wait, and until when they may read."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Final, Protocol

from holdfast.bayeux.wire.caller import Caller
from holdfast.bayeux.wire.errors import ErrorReply, RequestRefused
from holdfast.bayeux.wire.identity import Grants
from holdfast.delivery.basics.channels import Channel

# How often readers whose login may have ended are looked for, and how many of them in one turn.
_LOOK_S: Final = 0.5
_IN_TURN: Final = 200


class ReaderGrants(Grants, Protocol):
    """The rights of a request without a session."""

    subject: str
    # When the login ends, in seconds since 1970.
    ends_s: float

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


class Reader:
    """A request that reads histories.

    Args:
        grants: Its rights; None if no login is required.
        channels: What it reads; it may be patterns.
    """

    __slots__ = (
        "_rules",
        "bytes",
        "caller",
        "channels",
        "end",
        "grants",
        "live",
        "since_ms",
    )

    def __init__(
        self, caller: Caller, grants: ReaderGrants | None, channels: Sequence[Channel], live: Live
    ) -> None:
        self.caller, self.grants, self.channels, self.live = caller, grants, channels, live
        self.since_ms = time.time_ns() // 1_000_000
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


class Readers:
    """The readers that wait, in all, by address, and by subject.

    Args:
        check: Raises `RequestRefused` if a reader may no longer read.
        count: Called with their number when it has changed.
    """

    def __init__(
        self,
        most: int,
        most_of_one: int,
        check: Callable[[Reader], None],
        count: Callable[[int], None],
    ) -> None:
        self._most, self._most_of_one = most, most_of_one
        self._check, self._count = check, count
        # Of addresses and of subjects; no subject is an address.
        self._shares: Counter[tuple[str, str]] = Counter()
        self.waiting: dict[Reader, None] = {}
        # Watches them while there are any.
        self._watch: asyncio.Task[None] | None = None

    @contextmanager
    def one_more(self, reader: Reader) -> Iterator[None]:
        """Count a reader while it waits. Raises `RequestRefused` if there are too many."""
        if len(self.waiting) >= self._most:
            raise RequestRefused(ErrorReply.READERS_EXCEEDED, "max_readers", wait_s=1.0)
        shares = _shares_of(reader)
        if any(0 < self._most_of_one <= self._shares[each] for each in shares):
            raise RequestRefused(ErrorReply.READERS_EXCEEDED, "quota_readers", wait_s=1.0)
        self.waiting[reader] = None
        self._shares.update(shares)
        self._count(len(self.waiting))
        if self._watch is None:
            self._watch = asyncio.create_task(self._watching())
        try:
            yield
        finally:
            del self.waiting[reader]
            for each in shares:
                self._shares[each] -= 1
                if not self._shares[each]:
                    del self._shares[each]
            self._count(len(self.waiting))

    async def _watching(self) -> None:
        """End the waits of readers that may no longer read, while any wait."""
        while self.waiting:
            await asyncio.sleep(_LOOK_S)
            now_s = time.time()
            doubtful = [each for each in self.waiting if each.is_doubtful(now_s)]
            for place, reader in enumerate(doubtful):
                try:
                    self._check(reader)
                except RequestRefused:
                    if reader.end is not None:
                        reader.end()
                if place % _IN_TURN == _IN_TURN - 1:
                    await asyncio.sleep(0)
        self._watch = None


def _shares_of(reader: Reader) -> list[tuple[str, str]]:
    """Return what a reader counts for. Addresses of this machine are not counted."""
    network = reader.caller.network
    shares = [("address", network)] if network else []
    return [*shares, ("subject", reader.subject)] if reader.subject else shares
