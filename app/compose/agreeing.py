"""Compares the settings of this host with the settings of others.

A host that has no shard gets none as long as one of its fixed settings differs from what all hosts
with shards agree on. Any other difference is only shown: settings are changed on one host after the
other.
"""

import logging
import time
from collections.abc import Callable, Collection, Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from holdfast.compose.homes import homes_for
from holdfast.distribution import release
from holdfast.hosts.fixed_settings import differing
from holdfast.settings.agreement import agreement

if TYPE_CHECKING:
    from holdfast.hosts.rows import HostRow
    from holdfast.settings import Settings

log = logging.getLogger(__name__)

# Files of rights and passwords change while servers run.
_AGAIN_S: Final = 10.0

_TAKES_NONE: Final = (
    "this host takes no shard, because its settings differ from those of all hosts with shards: "
    "%s. Make them equal, or stop all hosts to change them"
)


def _homes(settings: "Settings") -> str:
    return blake2b(homes_for(settings.channels).to_json(), digest_size=6).hexdigest()


def _login(settings: "Settings") -> str:
    ways = ("keys", "issuer", "passwords", "header", "certificate")
    has_any = any(getattr(settings, f"login_{each}") for each in ways) or settings.backend
    return "needed" if has_any and not settings.login_anonymous else "none"


# The fixed settings: another value of one of them on one host harms others. The store itself
# refuses another name of the deployment, and another namespace is another deployment.
FIXED: Final[Mapping[str, Callable[["Settings"], str]]] = {
    # Sessions and channels are placed by it.
    "shards": lambda settings: str(settings.shards),
    # By history, work_queue and topic of a rule follows which shard keeps a channel.
    "channels": _homes,
    # A door without a login lets any client take the name of another one.
    "login": _login,
    # A door without rights lets any client do everything.
    "rights": lambda settings: "none" if settings.rights is None else "checked",
}


class Agreeing:
    """Knows whether living hosts agree with this one about what must be alike, and logs it."""

    def __init__(self, settings: "Settings") -> None:
        self._settings = settings
        self._digest, self._read_at = agreement(settings), time.monotonic()
        self._differing: list[str] = []
        # What this host tells others about its fixed settings.
        self.fixed = " ".join(f"{name}={value(settings)}" for name, value in FIXED.items())
        # The fixed settings because of which it takes no shard.
        self.refused: list[str] = []

    def refuse(self, rows: "Mapping[str, HostRow]", holders: Collection[str]) -> None:
        """Find out whether this host, which has no shard, may take one; log it if it may not.

        Args:
            holders: The other hosts that may have shards.
        """
        refused = differing(self.fixed, rows, holders)
        if refused and refused != self.refused:
            log.error(_TAKES_NONE, ", ".join(refused))
        self.refused = refused

    def digest(self) -> str:
        """Return what this host tells others about its settings."""
        if time.monotonic() - self._read_at > _AGAIN_S:
            self._digest, self._read_at = agreement(self._settings), time.monotonic()
        return self._digest

    def compare(self, rows: "Mapping[str, HostRow]", living: Collection[str]) -> None:
        """Log which hosts have other settings, when these are other hosts than before."""
        # Another release has other settings, and its digest says nothing.
        told = [(name, rows[name]) for name in living if name in rows]
        comparable = [each for each in told if each[1].release == release()]
        differing = sorted(name for name, row in comparable if row.digest not in ("", self._digest))
        if differing and differing != self._differing:
            log.warning(
                "settings that must be alike on all hosts differ from those of %s: compare the "
                "files of settings, rights and passwords",
                ", ".join(differing),
            )
        self._differing = differing
