"""Limits the connections of a listener, and chooses which one to close at the limit."""

from collections.abc import Callable, Hashable, Iterable

from holdfast.delivery.basics.ignoring import ignore

_ENDLESS = 2**30


class ConnectionLimit:
    """A bounded set of connections.

    At the limit, a new connection evicts the oldest one without a claim to its place. If there is
    none, the new connection is turned away. A request is a claim; with `for_operators`, only a
    valid token is.
    """

    def __init__(
        self,
        limit: int,
        report: Callable[[], None] = ignore,
        *,
        for_operators: bool = False,
    ) -> None:
        self._limit = limit
        self._for_operators = for_operators
        self._report = report
        # Connections that were refused or evicted.
        self.turned_away = 0
        self._present: set[Hashable] = set()
        # Connections without a claim, oldest first, with the function that closes each.
        self._evictable: dict[Hashable, Callable[[], None]] = {}

    def __len__(self) -> int:
        return len(self._present)

    @property
    def free(self) -> int:
        """How many connections may be added without an eviction."""
        return self._limit - len(self._present)

    def has_place(self) -> bool:
        """Make room for a connection, by an eviction if need be. Returns False if there is none."""
        if self.free > 0:
            return True
        self.turned_away += 1
        self._report()
        if not self._evictable:
            return False
        oldest, send_away = next(iter(self._evictable.items()))
        self.leave(oldest)
        send_away()
        return True

    def enter(self, guest: Hashable, send_away: Callable[[], None]) -> None:
        """Add a connection that has no claim yet."""
        self._present.add(guest)
        self._evictable[guest] = send_away

    def hear(self, guest: Hashable) -> None:
        """Record that the connection has sent a request."""
        if not self._for_operators:
            self.keep(guest)

    def keep(self, guest: Hashable) -> None:
        """Never evict this connection: it has a claim to its place, such as a valid token."""
        self._evictable.pop(guest, None)

    def is_kept(self, guest: Hashable) -> bool:
        """Return whether the connection has a claim to its place."""
        return guest in self._present and guest not in self._evictable

    def without_claim(self) -> Iterable[Hashable]:
        """Return the connections that have no claim to their place, oldest first."""
        return self._evictable

    def leave(self, guest: Hashable) -> None:
        """Remove a connection that is closed or closing."""
        self._present.discard(guest)
        self._evictable.pop(guest, None)


class NoConnectionLimit(ConnectionLimit):
    """Admits every connection and does not track them."""

    def __init__(self) -> None:
        super().__init__(limit=_ENDLESS)

    def enter(self, guest: Hashable, send_away: Callable[[], None]) -> None:
        """Do nothing: `leave` may never be called for it."""
