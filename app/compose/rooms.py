"""How the descriptors that the system gives to this process are shared out.

A connection is one, and strangers can have as many as they like. So there is a bound for each
listener: the store, its restart, child processes and files always find some left.
"""

import resource
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from app.delivery.notices import TURNED_AWAY, Notices
from app.web.room import Room

# For all that is no connection of a client; a quarter, where that is less.
_RESERVE = 128
# For operators, who are few; an eighth, where that is less.
_ADMIN = 128
# What counts as no limit: no process has so many.
_ENDLESS = 2**30


@dataclass(frozen=True, slots=True)
class Rooms:
    """The connections of everybody, and those of operators with an address of their own."""

    main: Room
    admin: Room

    def named(self) -> Mapping[str, Room]:
        """The rooms by the names that metrics have for them."""
        return {"main": self.main, "admin": self.admin}


def make_rooms(notices: Notices, *, has_admin_apart: bool) -> Rooms:
    """The rooms for this process."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    main, admin = share(
        _ENDLESS if soft == resource.RLIM_INFINITY else soft, has_admin_apart=has_admin_apart
    )
    return Rooms(
        Room(main, _teller(notices, "main", main)), Room(admin, _teller(notices, "admin", admin))
    )


def share(limit: int, *, has_admin_apart: bool) -> tuple[int, int]:
    """How many connections the main listener may have, and that of operators."""
    reserve, admin = min(_RESERVE, limit // 4), min(_ADMIN, limit // 8)
    return limit - reserve - (admin if has_admin_apart else 0), admin


def _teller(notices: Notices, listener: str, limit: int) -> Callable[[], None]:
    reason = f"it has {limit}, and the limit of open files allows no more"
    return partial(notices.tell, TURNED_AWAY, listener, reason)
