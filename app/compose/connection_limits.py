"""Divides the file descriptors of this process.

Each connection takes one, and clients can open any number. Each listener therefore has a limit,
which leaves enough for the store, its restart, child processes and files.
"""

import resource
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from holdfast.delivery.basics.notices import TURNED_AWAY, Notices
from holdfast.web.front.connection_limit import ConnectionLimit

# Reserved for everything but client connections; a quarter of the limit if that is less.
_RESERVE = 128
# Reserved for operators; an eighth of the limit if that is less.
_ADMIN = 128
# Values from here on mean "no limit": no process has so many.
_ENDLESS = 2**30


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The connection limits of the main listener, and of the administration's own if it has one."""

    main: ConnectionLimit
    admin: ConnectionLimit

    def named(self) -> Mapping[str, ConnectionLimit]:
        """Return the limits by the listener's name in metrics."""
        return {"main": self.main, "admin": self.admin}


def make_limits(notices: Notices, *, has_admin_apart: bool) -> ConnectionLimits:
    """Make the limits from the process's limit of open files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    main, admin = share(
        _ENDLESS if soft == resource.RLIM_INFINITY else soft, has_admin_apart=has_admin_apart
    )
    return ConnectionLimits(
        ConnectionLimit(main, _reporter(notices, "main", main)),
        ConnectionLimit(admin, _reporter(notices, "admin", admin), for_operators=True),
    )


def share(limit: int, *, has_admin_apart: bool) -> tuple[int, int]:
    """Return the limits of the main listener and of the operators' listener."""
    reserve, admin = min(_RESERVE, limit // 4), min(_ADMIN, limit // 8)
    return limit - reserve - (admin if has_admin_apart else 0), admin


def _reporter(notices: Notices, listener: str, limit: int) -> Callable[[], None]:
    reason = f"it has {limit}, and the limit of open files allows no more"
    return partial(notices.report, TURNED_AWAY, listener, reason)
