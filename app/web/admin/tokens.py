"""The tokens of the administration: one file for each role, created at the first start."""

import hmac
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

from holdfast.delivery.basics.ignoring import ignore

OPERATOR_FILE = "admin-token"
READER_FILE = "reader-token"
# A name that an operator chooses. The audit shows it after the role.
OPERATOR_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._@+-]{0,63}")
# The server's tokens cannot be guessed, so tokens that operators choose must be as long.
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


FILES = {Role.OPERATOR: OPERATOR_FILE, Role.READER: READER_FILE}
# A role whose token was replaced has two for a while. This file has the former one and its end.
FORMER = {role: f"{name}.former" for role, name in FILES.items()}


class FormerToken(NamedTuple):
    """The previous token, which stays valid until a time in seconds since 1970."""

    token: str
    until_s: float


@dataclass(slots=True)
class Tokens:
    """The tokens that are valid now. Files may replace them while the server runs."""

    operator: str = field(repr=False)
    reader: str = field(repr=False)
    # The operator's file, if this start created it.
    made: Path | None = None
    former: dict[Role, FormerToken] = field(default_factory=dict, repr=False)
    wall_s: Callable[[], float] = time.time
    # Called when one that is presented is not valid, which its file may already have.
    look: Callable[[], object] = field(default=ignore, repr=False)

    def role(self, presented: str) -> Role | None:
        """Return the role of a token. One that has just been written into its file is valid."""
        found = self._role_of(presented)
        if found is None and presented:
            self.look()
            found = self._role_of(presented)
        return found

    def _role_of(self, presented: str) -> Role | None:
        """Return the role of a token, in constant time."""
        given = presented.encode("utf-8", "surrogateescape")
        found = [role for role, token in self._valid() if hmac.compare_digest(given, token)]
        return max(found, default=None)

    def warrant(self, token: str) -> str:
        """Return the warrant of a client with this token: it is valid as long as the token."""
        return _warrant(token.encode("utf-8", "surrogateescape"))

    def role_by_warrant(self, warrant: str) -> Role | None:
        """Return the role of a warrant, in constant time."""
        given = warrant.encode()
        found = [
            role
            for role, token in self._valid()
            if hmac.compare_digest(given, _warrant(token).encode())
        ]
        return max(found, default=None)

    def _valid(self) -> list[tuple[Role, bytes]]:
        now_s = self.wall_s()
        former = [(role, each.token) for role, each in self.former.items() if now_s < each.until_s]
        present = [(Role.OPERATOR, self.operator), (Role.READER, self.reader)]
        return [(role, token.encode()) for role, token in (*present, *former)]

    def present(self, role: Role) -> str:
        """Return the role's token."""
        return self.operator if role is Role.OPERATOR else self.reader

    def replace(self, new: Mapping[Role, tuple[str, FormerToken | None]]) -> None:
        """Set the roles' tokens. Previous ones become invalid, or stay valid for a limited time.

        Raises `TokensUnusable`, and then replaces none.
        """
        tokens = {role: new[role][0] if role in new else self.present(role) for role in Role}
        if tokens[Role.OPERATOR] == tokens[Role.READER]:
            raise TokensUnusable("both roles have the same token")
        self.operator, self.reader = tokens[Role.OPERATOR], tokens[Role.READER]
        for role, (_, former) in new.items():
            self.former.pop(role, None)
            if former is not None:
                self.former[role] = former


def _warrant(token: bytes) -> str:
    return hmac.digest(token, _WARRANT, "sha256").hex()


def open_tokens(directory: Path) -> Tokens:
    """Read the tokens of this directory; create missing ones."""
    operator, is_new = _open(directory / OPERATOR_FILE)
    reader, _ = _open(directory / READER_FILE)
    if operator == reader:
        raise TokensUnusable(
            f"{directory}: {OPERATOR_FILE} and {READER_FILE} are the same; remove one file to get "
            "a new token"
        )
    former = {role: read_former(directory, role) for role in Role}
    return Tokens(
        operator,
        reader,
        directory / OPERATOR_FILE if is_new else None,
        {role: token for role, token in former.items() if token is not None},
    )


def read_former(directory: Path, role: Role) -> FormerToken | None:
    """Return the role's former token, if it may still be valid."""
    try:
        _check_mode(directory / FORMER[role])
        token, until_s = (directory / FORMER[role]).read_text("ascii").split()
        return FormerToken(token, float(until_s)) if _TOKEN.fullmatch(token) else None
    except (OSError, ValueError, TokensUnusable):
        # Without it, the former token is invalid at once.
        return None


def rotate(directory: Path, role: Role, overlap_s: float) -> None:
    """Replace the role's token by a new one. The old one stays valid for this time, if any."""
    path, former = directory / FILES[role], directory / FORMER[role]
    token = token_in(path, read_token_file(path))
    former.unlink(missing_ok=True)
    if overlap_s > 0:
        _write(former, f"{token}\n{time.time() + overlap_s:.3f}\n", like=path)
    # A server that sees the new token finds the former one already stored.
    _put(path, secrets.token_urlsafe(32) + "\n", like=path)


def put_token_file(path: Path, text: str) -> None:
    """Let a file of a token have this text; remove it if there is none."""
    if text:
        _put(path, text)
    else:
        path.unlink(missing_ok=True)


def _put(path: Path, text: str, *, like: Path | None = None) -> None:
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    _write(new, text, like=like)
    new.replace(path)


def _open(path: Path) -> tuple[str, bool]:
    try:
        if not os.path.lexists(path):
            return _make(path), True
    except FileExistsError:
        # Another worker was faster.
        pass
    except OSError as error:
        raise TokensUnusable(f"{path}: {error.strerror}") from None
    return token_in(path, read_token_file(path)), False


def _make(path: Path) -> str:
    """Create the file with a new token, at once: another worker may be about to read it."""
    token = secrets.token_urlsafe(32)
    new = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    _write(new, token + "\n")
    try:
        path.hardlink_to(new)
    finally:
        new.unlink()
    return token


def _write(path: Path, text: str, *, like: Path | None = None) -> None:
    """Create a file that only its owner can read; it has the owner of the file `like`."""
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(number, "w") as file:
        owner = os.fstat(number) if like is None else like.stat()
        if owner.st_uid != os.fstat(number).st_uid:
            # The server must be able to read a file that root wrote.
            os.fchown(number, owner.st_uid, owner.st_gid)
        file.write(text)
        file.flush()
        os.fsync(number)


def read_token_file(path: Path) -> bytes:
    """Return the content of the file, but not more than a token may have."""
    try:
        with path.open("rb") as file:
            return file.read(_LONGEST_FILE)
    except OSError as error:
        raise TokensUnusable(f"{path}: {error.strerror}") from None


def token_in(path: Path, text: bytes) -> str:
    """Return the token in a file with this text. Other users must not be able to read the file."""
    _check_mode(path)
    token = text[:_LONGEST_FILE].decode("ascii", "replace").strip()
    if _TOKEN.fullmatch(token) is None:
        raise TokensUnusable(
            f"{path}: a token has 32 to 256 visible characters; remove the file to get a new one"
        )
    return token


def _check_mode(path: Path) -> None:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise TokensUnusable(f"{path}: {error.strerror}") from None
    if mode & stat.S_IRWXO:
        raise TokensUnusable(f"{path}: everybody on this machine can read it: chmod 600 {path}")
