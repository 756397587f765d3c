"""How many connections a listener has, and who makes room when there are too many."""

from collections.abc import Callable, Hashable

_ENDLESS = 2**30


def _tell_nobody() -> None:
    pass


class Room:
    """The connections of a listener, as many as there may be.

    If there are, the oldest that has not asked for anything makes room for the next one; if all
    have, the next one is turned away.
    """

    def __init__(self, limit: int, tell: Callable[[], None] = _tell_nobody) -> None:
        self._limit = limit
        self._tell = tell
        # Connections that could not come in, or not stay.
        self.turned_away = 0
        self._present: set[Hashable] = set()
        # Those that have not asked for anything, the oldest first, and how they are sent away.
        self._silent: dict[Hashable, Callable[[], None]] = {}

    def __len__(self) -> int:
        return len(self._present)

    @property
    def free(self) -> int:
        """How many may come in without another leaving."""
        return self._limit - len(self._present)

    def has_place(self) -> bool:
        """Whether one more may come in, perhaps instead of another."""
        if self.free > 0:
            return True
        self.turned_away += 1
        self._tell()
        if not self._silent:
            return False
        oldest, send_away = next(iter(self._silent.items()))
        self.leave(oldest)
        send_away()
        return True

    def enter(self, guest: Hashable, send_away: Callable[[], None]) -> None:
        """Somebody comes in, who has not asked for anything yet."""
        self._present.add(guest)
        self._silent[guest] = send_away

    def hear(self, guest: Hashable) -> None:
        """The guest asks for something."""
        self._silent.pop(guest, None)

    def leave(self, guest: Hashable) -> None:
        """The guest is gone, or on its way out."""
        self._present.discard(guest)
        self._silent.pop(guest, None)


class Boundless(Room):
    """Has a place for everybody, and keeps no book of who is there."""

    def __init__(self) -> None:
        super().__init__(limit=_ENDLESS)

    def enter(self, guest: Hashable, send_away: Callable[[], None]) -> None:
        """Whoever comes may never say that it leaves."""
