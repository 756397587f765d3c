"""The tokens by which clients log in, and what servers are told about them."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from time import time
from typing import Any, NamedTuple

import jwt

from tests.simulation.clocks import EPOCH_S

# What only those may see who have a right to it, and what everybody may who has logged in.
VAULT, SQUARE = "/vault/a", "/square/a"
INSIDERS, CAST = "insiders", "cast"
# The right of insiders as a token may bring it, instead of the group.
CLAIM: Sequence[dict[str, Any]] = (
    {"may": ["subscribe", "publish", "create"], "channels": ["/vault/**"]},
)
_RIGHTS = """
[[rule]]
who = ["@cast", "anonymous"]
may = ["all"]
channels = ["/**"]

[[rule]]
who = ["@cast", "anonymous"]
may_not = ["subscribe", "publish"]
channels = ["/vault/**"]

[[rule]]
who = ["@insiders"]
may = ["subscribe", "publish", "create"]
channels = ["/vault/**"]

[[rule]]
who = ["*"]
may = ["subscribe", "publish", "create"]
channels = ["/square/**", "/{subject}/**"]
"""
_KEY, _OTHER_KEY, _NO_KEY = "k" * 32, "o" * 32, ""
_AUDIENCE = "simulated"
# How long servers let a login go on behind its end, and how long before that they warn of it.
_LEEWAY_S, WARNING_S = 1, 2.0
# Longer than any world.
_LONG_S = 86_400.0


class Pass(NamedTuple):
    """A token, and until when it is good, in true time."""

    token: str
    ends_at: float

    @property
    def ext(self) -> dict[str, Any]:
        """The field of a message that shows it."""
        return {"token": self.token}


class Issuer:
    """Gives tokens to clients.

    Args:
        now: Returns the true time, which the wall clocks of servers show.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now

    def settings(self, home: Path) -> dict[str, Any]:
        """Return what servers are told, with files in this directory."""
        key, rights = home / "token-key", home / "rights.toml"
        key.write_text(_KEY)
        rights.write_text(_RIGHTS)
        return {
            "login_keys": str(key),
            "login_audience": [_AUDIENCE],
            "login_leeway": _LEEWAY_S * 1000,
            "login_warning": round(WARNING_S * 1000),
            "login_rights_claim": "may",
            "login_anonymous": True,
            "rights": rights,
        }

    def of_cast(self, name: str) -> Pass:
        """Return a token that outlives the world, for the session with this name."""
        return self.issue(name.partition("/")[0], _LONG_S, groups=[CAST])

    def issue(self, subject: str, lifetime_s: float, **claims: Any) -> Pass:
        """Return a token for so long."""
        return self._issue(subject, lifetime_s, claims, _KEY)

    def former(self, subject: str, **claims: Any) -> Pass:
        """Return one that ended long ago."""
        return self._issue(subject, -_LONG_S, claims, _KEY)

    def forged(self, subject: str, lifetime_s: float, **claims: Any) -> Pass:
        """Return one that somebody else has sealed."""
        return self._issue(subject, lifetime_s, claims, _OTHER_KEY)

    def unsealed(self, subject: str, lifetime_s: float, **claims: Any) -> Pass:
        """Return one without a seal."""
        return self._issue(subject, lifetime_s, claims, _NO_KEY)

    def _issue(self, subject: str, lifetime_s: float, claims: dict[str, Any], key: str) -> Pass:
        ends_s = int(EPOCH_S + self.now() + lifetime_s)
        given = {"aud": _AUDIENCE, **claims, "sub": subject, "exp": ends_s}
        token = jwt.encode(given, key, "HS256" if key else "none")
        return Pass(token, ends_s - EPOCH_S + _LEEWAY_S)


class Dates(datetime):
    """Dates whose present is that of the process that runs now."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> "Dates":
        return cls.fromtimestamp(time(), tz or UTC)
