"""A login: who a client has proved to be."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import Any


class LoginMethod(Enum):
    """What proved the login."""

    ANONYMOUS = "anonymous"
    TOKEN = "token"  # noqa: S105 - a name
    PASSWORD = "password"  # noqa: S105 - a name
    HEADER = "header"
    CERTIFICATE = "certificate"


@dataclass(frozen=True, slots=True)
class Login:
    """The subject of a session's client, as its credentials prove it; times are Unix seconds."""

    subject: str
    method: LoginMethod
    groups: frozenset[str] = frozenset()
    # Afterwards the client must have renewed its login.
    expires_s: float = inf
    issued_s: float = 0.0
    # Empty if the credentials have no id to be revoked by.
    token_id: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the login as the store keeps it; it holds no secret."""
        return {
            "subject": self.subject,
            "method": self.method.value,
            "groups": sorted(self.groups),
            "expires": None if self.expires_s == inf else self.expires_s,
            "issued": self.issued_s,
            "id": self.token_id,
        }

    @classmethod
    def of_json(cls, kept: Mapping[str, Any]) -> "Login":
        """Read a stored login. Raises `KeyError`, `TypeError` or `ValueError`."""
        expires = kept["expires"]
        return cls(
            subject=str(kept["subject"]),
            method=LoginMethod(kept["method"]),
            groups=frozenset(map(str, kept["groups"])),
            expires_s=inf if expires is None else float(expires),
            issued_s=float(kept["issued"]),
            token_id=str(kept["id"]),
        )
