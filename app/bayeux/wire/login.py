"""A login: who a client has proved to be."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import Any, Self

from holdfast.bayeux.wire.operation import Operation


class LoginMethod(Enum):
    """How a client logged in."""

    ANONYMOUS = "anonymous"
    TOKEN = "token"  # noqa: S105 - a name
    PASSWORD = "password"  # noqa: S105 - a name
    HEADER = "header"
    CERTIFICATE = "certificate"
    BACKEND = "backend"


@dataclass(frozen=True, slots=True)
class Right:
    """Allows operations on channels, or denies them. `{subject}` in a channel is the client's."""

    operations: frozenset[Operation]
    channels: tuple[str, ...]
    denies: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the right in its stored form."""
        return {
            "operations": sorted(each.value for each in self.operations),
            "channels": list(self.channels),
            "denies": self.denies,
        }

    @classmethod
    def of_json(cls, kept: Mapping[str, Any]) -> Self:
        """Read a stored right. Raises `KeyError`, `TypeError` or `ValueError`."""
        return cls(
            operations=frozenset(map(Operation, kept["operations"])),
            channels=tuple(map(str, kept["channels"])),
            denies=bool(kept["denies"]),
        )


@dataclass(frozen=True, slots=True)
class Login:
    """The subject of a client, as proved by its credentials. Times are Unix seconds."""

    subject: str
    method: LoginMethod
    groups: frozenset[str] = frozenset()
    # After this time, the client must have renewed its login.
    expires_s: float = inf
    issued_s: float = 0.0
    # Empty if the credentials have no id by which they can be revoked.
    token_id: str = ""
    # The rights in its token, in addition to the rules for all clients.
    rights: tuple[Right, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the login in its stored form, which contains no secret."""
        return {
            "subject": self.subject,
            "method": self.method.value,
            "groups": sorted(self.groups),
            "expires": None if self.expires_s == inf else self.expires_s,
            "issued": self.issued_s,
            "id": self.token_id,
            "rights": [each.to_json() for each in self.rights],
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
            # Stored logins from before tokens had rights have none.
            rights=tuple(map(Right.of_json, kept.get("rights", ()))),
        )


@dataclass(frozen=True, slots=True)
class Vouched:
    """What the backend said about a client, asked by the worker that has the connection."""

    # None if it refused the client, or did not answer.
    login: Login | None = None
    # The text of its refusal; None if it did not answer.
    refusal: str | None = None
    # When the client may try again if it did not.
    wait_s: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return it as other workers get it."""
        login = None if self.login is None else self.login.to_json()
        return {"login": login, "refusal": self.refusal, "wait": self.wait_s}

    @classmethod
    def of_json(cls, told: Mapping[str, Any]) -> "Vouched":
        """Undo `to_json`. Raises `KeyError`, `TypeError` or `ValueError`."""
        login, refusal = told["login"], told["refusal"]
        return cls(
            login=None if login is None else Login.of_json(login),
            refusal=None if refusal is None else str(refusal),
            wait_s=float(told["wait"]),
        )
