"""Compares the settings of this host with the settings of others, by the digest of each."""

import logging
import time
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

from holdfast.distribution import release
from holdfast.settings.agreement import agreement

if TYPE_CHECKING:
    from holdfast.hosts.rows import HostRow
    from holdfast.settings import Settings

log = logging.getLogger(__name__)

# Files of rights and passwords change while servers run.
_AGAIN_S: Final = 10.0


class Agreeing:
    """Knows whether living hosts agree with this one about what must be alike, and logs it."""

    def __init__(self, settings: "Settings") -> None:
        self._settings = settings
        self._digest, self._read_at = agreement(settings), time.monotonic()
        self._differing: list[str] = []

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
