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
from holdfast.hosts.fixed_settings import LINKS, differing
from holdfast.settings.agreement import agreement
from holdfast.web.forwarding.hello import FORM, HIGHEST

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
_TAKES_NONE_BESIDE: Final = "this host takes no shard: %s"
_NO_COMMON_FORM: Final = (
    "release {} has no form of links in common with {}: update by way of a release between them, "
    "or stop all hosts first"
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
    # Without a common form, hosts pass nothing on to each other.
    LINKS: lambda _: f"{FORM}-{HIGHEST}",
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
        if refused != self.refused:
            if LINKS in refused:
                log.error(_TAKES_NONE_BESIDE, self.fault_of(self.strangers(rows, holders)))
            elif refused:
                log.error(_TAKES_NONE, ", ".join(refused))
        self.refused = refused

    def strangers(
        self, rows: "Mapping[str, HostRow]", hosts: Collection[str]
    ) -> "dict[str, HostRow]":
        """Return the hosts to which this one cannot make links, with their rows."""
        return {
            host: rows[host]
            for host in hosts
            if host in rows and LINKS in differing(self.fixed, rows, [host])
        }

    @staticmethod
    def fault_of(strangers: "Mapping[str, HostRow]") -> str:
        """Return what to do about hosts to which this one cannot make links."""
        others = [f"{row.release} on {host}" for host, row in sorted(strangers.items())]
        return _NO_COMMON_FORM.format(release(), ", ".join(others))

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
