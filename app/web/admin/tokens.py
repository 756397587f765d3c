"""The tokens of the administration: one file for each role, created at the first start."""

import hmac
import os
import re
import secrets
import stat
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path

OPERATOR_FILE = "admin-token"
READER_FILE = "reader-token"
# A name that an operator goes by; it stands in the audit behind the role.
OPERATOR_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._@+-]{0,63}")
# Nobody can guess the server's tokens; an operator's own token must be as long.
_TOKEN = re.compile(r"[!-~]{32,256}")
_LONGEST_FILE = 1024
_WARRANT = b"the role of a session"


class TokensUnusable(Exception):
    """The files cannot be used; the text says why and what to do."""


class Role(IntEnum):
    """The rights of a token; the higher role includes the lower."""

    READER = 1
    OPERATOR = 2

    @property
    def title(self) -> str:
        """The role as the audit names it."""
        return self.name.lower()

    @classmethod
    def of(cls, who: str) -> "Role":
        """Return the role of a caller, whose name begins with it."""
        return next(role for role in cls if who.startswith(role.title))


@dataclass(frozen=True, slots=True)
class Tokens:
    """The token of each role."""

    operator: str = field(repr=False)
    reader: str = field(repr=False)
    # The operator's file, if this start made it.
    made: Path | None = None

    def role(self, presented: str) -> Role | None:
        """Return the role of a token, in constant time."""
        given = presented.encode("utf-8", "surrogateescape")
        is_operator = hmac.compare_digest(given, self.operator.encode())
        is_reader = hmac.compare_digest(given, self.reader.encode())
        if is_operator:
            return Role.OPERATOR
        return Role.READER if is_reader else None

    def warrant(self, role: Role) -> str:
        """Return the warrant of a role, which is valid while its token stays the same."""
        token = self.operator if role is Role.OPERATOR else self.reader
        return hmac.digest(token.encode(), _WARRANT, "sha256").hex()


def open_tokens(directory: Path) -> Tokens:
    """Read the tokens of this directory; create missing ones."""
    operator, is_new = _open(directory / OPERATOR_FILE)
    reader, _ = _open(directory / READER_FILE)
    if operator == reader:
        raise TokensUnusable(
            f"{directory}: {OPERATOR_FILE} and {READER_FILE} are the same; remove one file to get "
            "a new token"
        )
    return Tokens(operator, reader, directory / OPERATOR_FILE if is_new else None)


def _open(path: Path) -> tuple[str, bool]:
    try:
        return _make(path), True
    except FileExistsError:
        return _read(path), False
    except OSError as error:
        raise TokensUnusable(f"{path}: {error.strerror}") from None


def _make(path: Path) -> str:
    token = secrets.token_urlsafe(32)
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(number, "w") as file:
        file.write(token + "\n")
        file.flush()
        os.fsync(number)
    return token


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(_LONGEST_FILE).decode("ascii", "replace").strip()
    except OSError as error:
        raise TokensUnusable(f"{path}: {error.strerror}") from None
    if mode & stat.S_IRWXO:
        raise TokensUnusable(f"{path}: everybody on this machine can read it: chmod 600 {path}")
    if _TOKEN.fullmatch(text) is None:
        raise TokensUnusable(
            f"{path}: a token has 32 to 256 visible characters; remove the file to get a new one"
        )
    return text
